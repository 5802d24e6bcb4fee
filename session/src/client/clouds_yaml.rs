//! `clouds.yaml`, `secure.yaml` and `clouds-public.yaml`: what one such file says.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::ConfigError;
use super::settings::{Settings, canonical};

/// More than anybody writes by hand.
const MAX_BYTES: u64 = 1024 * 1024;

/// What one cloud or profile says, still without the file that it comes from.
#[derive(Default)]
pub(super) struct Entry {
    settings: Vec<(&'static str, String)>,
    /// The name of the entry in `clouds-public.yaml` that this one builds upon.
    pub(super) profile: Option<String>,
    /// The regions, with what is different there.
    pub(super) regions: Vec<(String, Entry)>,
}

impl Entry {
    /// The settings as a layer that knows its file.
    pub(super) fn layer(&self, file: &Path, home: Option<&str>) -> Settings {
        let from: Arc<str> = file.to_string_lossy().into();
        let mut settings = Settings::default();
        for (key, text) in &self.settings {
            settings.insert(key, text.clone(), &from);
        }
        settings.anchor_paths(file.parent().unwrap_or(Path::new("")), home);
        settings
    }
}

/// One file. The default stands for one that does not exist.
#[derive(Default)]
pub(super) struct CloudFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The clouds, or the profiles in `clouds-public.yaml`.
    pub(super) entries: BTreeMap<String, Entry>,
}

impl CloudFile {
    /// Reads a file; `None` where there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let failed = |problem: String| ConfigError::File {
            path: path.to_owned(),
            problem,
        };
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| failed(error.to_string()))?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(failed(format!("larger than {MAX_BYTES} bytes")));
        }
        let entries = parse(&text).map_err(failed)?;
        Ok(Some(Self {
            path: path.to_owned(),
            entries,
        }))
    }
}

#[derive(Deserialize)]
struct Document {
    clouds: Option<BTreeMap<String, Option<Entry>>>,
    #[serde(rename = "public-clouds")]
    public_clouds: Option<BTreeMap<String, Option<Entry>>>,
}

fn parse(text: &str) -> Result<BTreeMap<String, Entry>, String> {
    let options = serde_saphyr::options! {
        // A snippet would print the lines around, and a password stands on one of them.
        with_snippet: false,
        budget: serde_saphyr::budget! { max_events: 100_000, max_nodes: 50_000, max_aliases: 1_000 },
    };
    let document: Option<Document> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("not the YAML that is expected here: {}", error.without_snippet()))?;
    let Some(document) = document else {
        return Ok(BTreeMap::new());
    };
    let clouds = document
        .clouds
        .into_iter()
        .chain(document.public_clouds)
        .flatten();
    Ok(clouds
        .map(|(name, entry)| (name, entry.unwrap_or_default()))
        .collect())
}

// By hand rather than derived, for two reasons: scalars keep the text that was written (a derived
// untyped map would turn the password 0123 into a number), and no message quotes a value.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with values")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entry, M::Error> {
        let mut entry = Entry::default();
        let mut auth = Entry::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "auth" => auth = map.next_value::<Option<Entry>>()?.unwrap_or_default(),
                // `cloud` is an old spelling of `profile`.
                "profile" | "cloud" => entry.profile = map.next_value()?,
                "regions" => {
                    let regions = map.next_value::<Option<Vec<Region>>>()?.unwrap_or_default();
                    entry.regions = regions
                        .into_iter()
                        .map(|region| (region.name, region.values))
                        .collect();
                }
                other => match canonical(other) {
                    Some(known) => {
                        let text = map.next_value::<Option<String>>()?.unwrap_or_default();
                        entry.settings.push((known, text));
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                },
            }
        }
        // What stands under `auth` wins over the same key beside it.
        entry.settings.append(&mut auth.settings);
        Ok(entry)
    }
}

/// A region: its name, or a mapping with the name and what is different there.
struct Region {
    name: String,
    values: Entry,
}

impl<'de> Deserialize<'de> for Region {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RegionVisitor)
    }
}

struct RegionVisitor;

impl<'de> Visitor<'de> for RegionVisitor {
    type Value = Region;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a region's name, or `name` and `values`")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Region, E> {
        Ok(Region {
            name: name.to_owned(),
            values: Entry::default(),
        })
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Region, M::Error> {
        let (mut name, mut values) = (None, Entry::default());
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => name = map.next_value::<Option<String>>()?,
                "values" => values = map.next_value::<Option<Entry>>()?.unwrap_or_default(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let name = name.ok_or_else(|| M::Error::custom("a region without `name`"))?;
        Ok(Region { name, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_keep_their_text() {
        let clouds = parse(
            "clouds:\n  a:\n    verify: no\n    region_name: 1.10\n    auth: {password: 0123, username: 1e5}\n",
        )
        .unwrap();
        let layer = clouds["a"].layer(Path::new("x/clouds.yaml"), None);
        assert_eq!(layer.get("password"), Some("0123"));
        assert_eq!(layer.get("username"), Some("1e5"));
        assert_eq!(layer.get("region_name"), Some("1.10"));
        assert_eq!(layer.get("verify"), Some("no"));
    }

    #[test]
    fn no_mistake_makes_a_secret_appear_in_the_message() {
        let mistakes = [
            "clouds: s3cr3t",
            "clouds: [s3cr3t]",
            "clouds: {a: s3cr3t}",
            "clouds: {a: {auth: s3cr3t}}",
            "clouds: {a: {auth: [s3cr3t]}}",
            "clouds: {a: {auth: {password: [s3cr3t]}}}",
            "clouds: {a: {auth: {password: {x: s3cr3t}}}}",
            "clouds: {a: {auth: {password: *s3cr3t}}}",
            "clouds: {a: {auth: {password: !!binary s3cr3t%}}}",
            "clouds: {a: {auth: {password: \"s3cr3t}}}",
            "clouds:\n  a:\n    password: s3cr3t: s3cr3t\n",
            "clouds:\n  a:\n    password: @s3cr3t\n",
            "clouds:\n  a:\n    password: %s3cr3t\n  \tb: 1",
            "clouds: {a: {regions: s3cr3t}}",
            "clouds: {a: {regions: [{values: s3cr3t, name: x}]}}",
            "s3cr3t",
            "- s3cr3t",
        ];
        for text in mistakes {
            let Err(message) = parse(text) else {
                panic!("this should be refused: {text}")
            };
            assert!(!message.contains("s3cr3t"), "{text}: {message}");
        }
    }

    #[test]
    fn nothing_and_emptiness_are_no_clouds() {
        for text in [
            "",
            "---",
            "clouds:",
            "# nothing",
            "ansible: {use_hostnames: true}",
        ] {
            assert!(parse(text).unwrap().is_empty(), "{text}");
        }
        assert_eq!(parse("clouds: {a: }").unwrap().len(), 1);
    }

    #[test]
    fn merge_keys_work_and_alias_bombs_do_not() {
        let text = "x: &x {region_name: R}\nclouds: {a: {<<: *x, interface: admin}}";
        let layer = parse(text).unwrap()["a"].layer(Path::new("clouds.yaml"), None);
        assert_eq!(
            (layer.get("region_name"), layer.get("interface")),
            (Some("R"), Some("admin"))
        );

        let mut bomb = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let below = vec![format!("*l{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("l{level}: &l{level} [{below}]\n"));
        }
        bomb.push_str("clouds: {a: {networks: *l11}}\n");
        assert!(parse(&bomb).is_err());
    }
}
