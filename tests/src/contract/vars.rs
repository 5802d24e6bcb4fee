//! Variables, and names that no other run uses.

use serde_json::{Map, Value};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use uuid::Uuid;

use super::Error;

/// How deep variables may name each other.
const DEPTH: usize = 8;

/// What makes the names of one run different from those of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed(String);

impl Seed {
    /// One that no other run has: the services may be shared, and remember the names of earlier runs.
    pub fn random() -> Self {
        // The standard library's hash keys are random per process; there is no need for more.
        Self(format!("{:016x}", RandomState::new().build_hasher().finish()))
    }

    fn uuid(&self, file: &str, label: &str) -> Uuid {
        let name = format!("unprovision-contract:{}/{file}/{label}", self.0);
        Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes())
    }

    /// A few characters that belong to the run and the file.
    fn tag(&self, file: &str) -> String {
        self.uuid(file, "").simple().to_string().split_off(24)
    }
}

impl From<&str> for Seed {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The variables of one file's run.
#[derive(Debug)]
pub(super) struct Vars<'a> {
    file: &'a str,
    seed: &'a Seed,
    constants: &'a Map<String, Value>,
    saved: Map<String, Value>,
}

impl<'a> Vars<'a> {
    pub(super) fn new(file: &'a str, seed: &'a Seed, constants: &'a Map<String, Value>) -> Self {
        Self {
            file,
            seed,
            constants,
            saved: Map::new(),
        }
    }

    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.saved.insert(name.to_owned(), value);
    }

    /// A value with all variables in it replaced, in keys too. A text that is nothing but one variable
    /// becomes that variable's value, whatever its type.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, Error> {
        self.fill_to(value, DEPTH)
    }

    /// A text with all variables in it replaced.
    pub(super) fn fill_text(&self, text: &str) -> Result<String, Error> {
        self.text_to(text, DEPTH)
    }

    fn fill_to(&self, value: &Value, depth: usize) -> Result<Value, Error> {
        match value {
            Value::String(text) => match whole(text) {
                Some(name) => self.get(name, depth),
                None => self.text_to(text, depth).map(Value::String),
            },
            Value::Array(elements) => elements
                .iter()
                .map(|element| self.fill_to(element, depth))
                .collect(),
            Value::Object(members) => {
                let filled = members
                    .iter()
                    .map(|(key, value)| Ok((self.text_to(key, depth)?, self.fill_to(value, depth)?)));
                filled.collect::<Result<Map<_, _>, Error>>().map(Value::Object)
            }
            _ => Ok(value.clone()),
        }
    }

    fn text_to(&self, text: &str, depth: usize) -> Result<String, Error> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| Error::Unset(after.to_owned()))?;
            match self.get(name, depth)? {
                Value::String(text) => filled.push_str(&text),
                value => filled.push_str(&value.to_string()),
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn get(&self, name: &str, depth: usize) -> Result<Value, Error> {
        let unset = || Error::Unset(name.to_owned());
        let depth = depth.checked_sub(1).ok_or_else(unset)?;
        if let Some((kind, label)) = name.split_once(':') {
            return self.unique(kind, label).map(Value::String).ok_or_else(unset);
        }
        match self.saved.get(name) {
            Some(value) => Ok(value.clone()),
            None => self
                .constants
                .get(name)
                .ok_or_else(unset)
                .and_then(|value| self.fill_to(value, depth)),
        }
    }

    /// A name of this run and file alone.
    fn unique(&self, kind: &str, label: &str) -> Option<String> {
        let tag = self.seed.tag(self.file);
        match kind {
            "uuid" => Some(self.seed.uuid(self.file, label).to_string()),
            "name" => Some(format!("contract-{label}-{tag}")),
            "custom" => Some(format!("CUSTOM_CONTRACT_{label}_{tag}").to_uppercase()),
            _ => None,
        }
    }
}

/// The name, if a text is one variable and nothing else.
fn whole(text: &str) -> Option<&str> {
    text.strip_prefix("${")?
        .strip_suffix('}')
        .filter(|name| !name.contains('}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_keep_their_type_alone_and_become_text_within_text() {
        let (seed, constants) = (
            Seed::from("s"),
            Map::from_iter([("unit".to_owned(), json!({"n": "${n}"}))]),
        );
        let mut vars = Vars::new("f", &seed, &constants);
        vars.save("n", json!(7));
        assert_eq!(
            vars.fill(&json!(["${n}", "x${n}y", "${unit}"])).unwrap(),
            json!([7, "x7y", {"n": 7}])
        );
        assert_eq!(vars.fill(&json!({"k${n}": null})).unwrap(), json!({"k7": null}));
        assert!(matches!(vars.fill(&json!("${nope}")), Err(Error::Unset(name)) if name == "nope"));
        assert!(vars.fill_text("${n").is_err());
    }

    #[test]
    fn a_circle_of_variables_is_an_error() {
        let (seed, constants) = (Seed::from("s"), Map::from_iter([("a".to_owned(), json!("${a}"))]));
        assert!(Vars::new("f", &seed, &constants).fill_text("${a}").is_err());
    }

    #[test]
    fn names_differ_by_seed_and_file_and_label() {
        let none = Map::new();
        let name = |seed: &str, file: &str, text: &str| {
            Vars::new(file, &Seed::from(seed), &none).fill_text(text).unwrap()
        };
        let one = name("s", "f", "${uuid:a}");
        assert_eq!(one, name("s", "f", "${uuid:a}"));
        for other in [
            name("t", "f", "${uuid:a}"),
            name("s", "g", "${uuid:a}"),
            name("s", "f", "${uuid:b}"),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(
            name("s", "f", "${custom:x}"),
            name("s", "f", "${custom:x}").to_uppercase()
        );
        assert_ne!(Seed::random(), Seed::random());
    }
}
