//! Comparing an expected JSON value with the one that came.
//!
//! Scalars must be equal, arrays too, element by element; an object must have the expected members and
//! may have others. An object whose keys begin with `$` is a matcher; `tests/contract/README.md` lists them.

use serde_json::{Map, Value};

/// One place where an answer is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: `status`, `body/nodes/0/uuid`.
    pub at: String,
    /// What was expected there.
    pub expected: String,
    /// What was there.
    pub got: String,
}

/// Compares an expected value with the actual one, `None` if there is nothing; returns all differences.
pub fn compare(at: &str, expected: &Value, actual: Option<&Value>) -> Vec<Difference> {
    match expected {
        Value::Object(object) if object.keys().any(|key| key.starts_with('$')) => object
            .iter()
            .flat_map(|(name, wanted)| matcher(at, name, wanted, actual))
            .collect(),
        Value::Object(object) => match actual {
            Some(Value::Object(members)) => object
                .iter()
                .flat_map(|(key, value)| compare(&below(at, key), value, members.get(key)))
                .collect(),
            _ => differs(at, expected, actual),
        },
        Value::Array(elements) => match actual {
            Some(Value::Array(others)) if elements.len() == others.len() => {
                let pairs = elements.iter().zip(others).enumerate();
                pairs
                    .flat_map(|(i, (one, other))| compare(&below(at, &i.to_string()), one, Some(other)))
                    .collect()
            }
            _ => differs(at, expected, actual),
        },
        _ if equal(expected, actual) => Vec::new(),
        _ => differs(at, expected, actual),
    }
}

/// Numbers are compared by value: YAML's `1` and JSON's `1.0` are the same.
fn equal(expected: &Value, actual: Option<&Value>) -> bool {
    match (expected.as_f64(), actual.and_then(Value::as_f64)) {
        (Some(one), Some(other)) => one == other,
        _ => Some(expected) == actual,
    }
}

fn below(at: &str, key: &str) -> String {
    format!("{at}/{key}")
}

fn differs(at: &str, expected: &Value, actual: Option<&Value>) -> Vec<Difference> {
    vec![difference(at, expected.to_string(), actual)]
}

fn difference(at: &str, expected: String, actual: Option<&Value>) -> Difference {
    let got = actual.map_or_else(|| "nothing".to_owned(), Value::to_string);
    Difference {
        at: at.to_owned(),
        expected,
        got,
    }
}

/// Applies one matcher.
fn matcher(at: &str, name: &str, wanted: &Value, actual: Option<&Value>) -> Vec<Difference> {
    let string = actual.and_then(Value::as_str);
    let fits = match name {
        "$any" => actual.is_some(),
        "$absent" => actual.is_none(),
        "$type" => actual.is_some_and(|value| wanted.as_str().is_some_and(|kind| is_a(kind, value))),
        "$contains" => both(string, wanted.as_str(), |text, part| text.contains(part)),
        "$prefix" => both(string, wanted.as_str(), |text, part| text.starts_with(part)),
        "$len" => actual
            .and_then(length)
            .is_some_and(|length| Some(length as u64) == wanted.as_u64()),
        "$not" => actual.is_some() && !compare(at, wanted, actual).is_empty(),
        "$one_of" => wanted
            .as_array()
            .is_some_and(|all| all.iter().any(|one| compare(at, one, actual).is_empty())),
        "$has" => actual.and_then(Value::as_array).is_some_and(|elements| {
            elements
                .iter()
                .any(|element| compare(at, wanted, Some(element)).is_empty())
        }),
        "$exactly" => return exactly(at, wanted, actual),
        "$json" => return json_within(at, wanted, actual),
        _ => return vec![difference(at, format!("{name}, which is no matcher"), actual)],
    };
    let expected = || format!("{{{name}: {wanted}}}");
    if fits {
        Vec::new()
    } else {
        vec![difference(at, expected(), actual)]
    }
}

fn both(text: Option<&str>, part: Option<&str>, test: impl Fn(&str, &str) -> bool) -> bool {
    text.zip(part).is_some_and(|(text, part)| test(text, part))
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(elements) => Some(elements.len()),
        Value::Object(members) => Some(members.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "uuid" => value
            .as_str()
            .is_some_and(|text| text.len() == 36 && uuid::Uuid::parse_str(text).is_ok()),
        "time" => value
            .as_str()
            .is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
        _ => false,
    }
}

/// An object with these members and no others.
fn exactly(at: &str, wanted: &Value, actual: Option<&Value>) -> Vec<Difference> {
    let mut all = compare(at, wanted, actual);
    if let (Some(wanted), Some(Value::Object(members))) = (wanted.as_object(), actual) {
        let further = members.iter().filter(|(key, _)| !wanted.contains_key(*key));
        all.extend(
            further.map(|(key, value)| difference(&below(at, key), "nothing".to_owned(), Some(value))),
        );
    }
    all
}

/// A string that is JSON itself.
fn json_within(at: &str, wanted: &Value, actual: Option<&Value>) -> Vec<Difference> {
    let inner = actual
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    match inner {
        Some(inner) => compare(&below(at, "(json)"), wanted, Some(&inner)),
        None => vec![difference(at, "a string with JSON in it".to_owned(), actual)],
    }
}

/// The text of a service's error, in whichever of the known shapes it comes.
pub(super) fn error_text(body: &Value) -> Option<String> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let inner = || -> Option<String> {
        let inner: Map<String, Value> = serde_json::from_str(&text("/error_message")?).ok()?;
        let words = inner.get("faultstring").or_else(|| inner.get("description"))?;
        words.as_str().map(str::to_owned)
    };
    inner()
        .or_else(|| text("/errors/0/detail"))
        .or_else(|| text("/error/message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(expected: Value, actual: Value) -> bool {
        compare("body", &expected, Some(&actual)).is_empty()
    }

    #[test]
    fn objects_may_have_more_arrays_may_not() {
        assert!(fits(json!({"a": 1}), json!({"a": 1.0, "b": 2})));
        assert!(!fits(json!({"a": 1}), json!({"b": 1})));
        assert!(!fits(json!([1]), json!([1, 2])));
        assert!(!fits(json!({"a": null}), json!({})));
        assert!(!fits(json!({"$exactly": {"a": 1}}), json!({"a": 1, "b": 2})));
    }

    #[test]
    fn matchers_accept_and_refuse() {
        let text =
            json!({"m": "{\"code\": 4}", "list": [1, 2], "id": "3d4ad2e0-1f3c-4a5b-8a73-3d2a1c6c7b11"});
        for good in [
            json!({"x": {"$absent": true}, "list": {"$len": 2, "$has": 2}}),
            json!({"m": {"$json": {"code": 4}}, "id": {"$type": "uuid"}}),
            json!({"m": {"$contains": "code", "$prefix": "{"}, "list": {"$not": {"$has": 3}}}),
            json!({"list": {"$one_of": [[1], [1, 2]]}}),
        ] {
            assert!(fits(good.clone(), text.clone()), "{good}");
        }
        for bad in [
            json!({"m": {"$absent": true}}),
            json!({"list": {"$len": 3}}),
            json!({"x": {"$not": {"$has": 3}}}),
            json!({"m": {"$json": {"code": 5}}}),
            json!({"id": {"$type": "time"}}),
            json!({"id": {"$like": "3d"}}),
        ] {
            assert!(!fits(bad.clone(), text.clone()), "{bad}");
        }
    }

    #[test]
    fn errors_are_read_in_all_shapes() {
        for body in [
            json!({"error_message": "{\"faultstring\": \"no\"}"}),
            json!({"error_message": "{\"description\": \"no\"}"}),
            json!({"errors": [{"detail": "no"}]}),
            json!({"error": {"message": "no"}}),
        ] {
            assert_eq!(error_text(&body).as_deref(), Some("no"), "{body}");
        }
    }
}
