//! The layers of the configuration, and where each value came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::error::{Actual, Kind};
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use unprovision_session::nearest;

use super::{Config, ConfigError, HumanDuration, Scope, set};

/// Variables that begin so are settings; `__` leads into a section.
const PREFIX: &str = "UNPROVISION_";
/// The variable that names the file; the one that is not a setting.
const FILE_VARIABLE: &str = "UNPROVISION_CONFIG";
/// Where a value came from that nobody has set.
const DEFAULT: &str = "default";
/// Before the number of a scope, in keys.
const SCOPE: &str = "scope.";

/// The environment, as far as it is readable text. An empty variable counts as unset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process.
    pub(crate) fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        // The XDG specification: a relative path is to be ignored.
        self.get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
        )
    }
}

/// A setting that was given on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    /// The flag, for messages.
    pub(crate) flag: &'static str,
    /// The setting's key.
    pub(crate) key: &'static str,
    /// Its value.
    pub(crate) value: String,
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// The settings.
    pub(crate) config: Config,
    /// Each key with its value, and where that came from; in the order of the keys.
    pub(crate) values: Vec<Setting>,
}

/// One setting of the effective configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Its key, with dots.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: toml::Value,
    /// The file, variable or flag, or `default`.
    pub(crate) from: String,
}

/// Defaults and flags only.
#[cfg(feature = "sandbox")]
pub(crate) fn load_flags(flags: &[Flag]) -> Result<Loaded, ConfigError> {
    extract(Figment::from(Layer::defaults()), &Environment::default(), flags)
}

/// Puts the layers together: defaults, one file, `OS_CLOUD`, `UNPROVISION_*`, flags; each wins over those before it.
pub(crate) fn load(file: Option<&Path>, env: &Environment, flags: &[Flag]) -> Result<Loaded, ConfigError> {
    let mut figment = Figment::from(Layer::defaults());
    if let Some(path) = find_file(file, env)? {
        figment = figment.merge(Toml::file_exact(path));
    }
    if let Some(cloud) = env.get("OS_CLOUD") {
        figment = figment.merge(Layer::one("OS_CLOUD", "os_cloud", cloud));
    }
    for (name, value) in &env.0 {
        if let Some(key) = name.strip_prefix(PREFIX).filter(|_| name != FILE_VARIABLE) {
            let key = key.to_ascii_lowercase().replace("__", ".");
            figment = figment.merge(Layer::one(name, &key, value));
        }
    }
    extract(figment, env, flags)
}

fn extract(mut figment: Figment, env: &Environment, flags: &[Flag]) -> Result<Loaded, ConfigError> {
    for Flag { flag, key, value } in flags {
        figment = figment.merge(Layer::one(flag, key, value));
    }
    // Lossy: variables and flags are text, also where a number or a truth value is meant.
    let mut config: Config = figment
        .extract_lossy()
        .map_err(|error| explain(&figment, error))?;
    config.journal = journal(&config, env).into();
    config.check().map_err(|(key, problem)| ConfigError::Invalid {
        key: key.to_owned(),
        from: from(&figment, key),
        problem,
    })?;
    let values = leaves(&config).into_iter().map(|(key, value)| Setting {
        from: from(&figment, &key),
        key,
        value,
    });
    let values = values.collect();
    Ok(Loaded { config, values })
}

/// The one file that is read: the one that was asked for, or else the first that there is in the usual places.
fn find_file(asked: Option<&Path>, env: &Environment) -> Result<Option<PathBuf>, ConfigError> {
    let asked = asked
        .map(Path::to_owned)
        .or_else(|| env.get(FILE_VARIABLE).map(PathBuf::from));
    let readable = |path: PathBuf| match std::fs::read(&path) {
        Ok(_) => Ok(Some(path)),
        Err(error) => Err(ConfigError::File {
            file: path.display().to_string(),
            problem: error.to_string(),
        }),
    };
    if let Some(path) = asked {
        return readable(path);
    }
    let own = env
        .folder("XDG_CONFIG_HOME")
        .or_else(|| Some(env.folder("HOME")?.join(".config")));
    let places = [
        Some(PathBuf::from("unprovision.toml")),
        own.map(|folder| folder.join("unprovision/config.toml")),
        Some(PathBuf::from("/etc/unprovision/config.toml")),
    ];
    match places.into_iter().flatten().find(|path| path.exists()) {
        Some(path) => readable(path),
        None => Ok(None),
    }
}

/// Where the journal is; empty where nobody says, and there is no home.
fn journal(config: &Config, env: &Environment) -> String {
    let home = env.folder("HOME");
    if let Some(path) = set(&config.journal) {
        return match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest).display().to_string(),
            _ => path.to_owned(),
        };
    }
    let usual = || match rustix::process::geteuid().is_root() {
        true => Some(PathBuf::from("/var/lib")),
        false => Some(home?.join(".local/state")),
    };
    env.folder("XDG_STATE_HOME")
        .or_else(usual)
        .map(|folder| folder.join("unprovision/journal.sqlite").display().to_string())
        .unwrap_or_default()
}

/// All keys with their values, sections after what stands outside of them.
pub(super) fn leaves(config: &Config) -> Vec<(String, toml::Value)> {
    let mut outside = Vec::new();
    let mut sections = Vec::new();
    // A structure of text, numbers and sections is always a table.
    for (key, value) in toml::Table::try_from(config).unwrap_or_default() {
        match value {
            toml::Value::Table(section) => {
                sections.extend(
                    section
                        .into_iter()
                        .map(|(name, value)| (format!("{key}.{name}"), value)),
                );
            }
            value => outside.push((key, value)),
        }
    }
    outside.extend(sections);
    outside
}

/// Where the value of a key came from; a scope as a whole comes from one place.
fn from(figment: &Figment, key: &str) -> String {
    let key = if key.starts_with(SCOPE) { "scope" } else { key };
    match figment.find_metadata(key) {
        Some(metadata) => match metadata.source.as_ref().and_then(figment::Source::file_path) {
            Some(path) => path.display().to_string(),
            None => metadata.name.to_string(),
        },
        None => DEFAULT.to_owned(),
    }
}

/// Figment's error in our words: the key, where it is, and what would be right.
fn explain(figment: &Figment, error: figment::Error) -> ConfigError {
    let mut key = error.path.join(".");
    if let Kind::UnknownField(field, _) = &error.kind {
        if error.path.last() != Some(field) {
            key = [key.as_str(), field]
                .iter()
                .filter_map(|part| set(part))
                .collect::<Vec<_>>()
                .join(".");
        }
        let known = match key.strip_prefix(SCOPE).and_then(|rest| rest.split_once('.')) {
            Some((number, _)) => Scope::KEYS.map(|own| format!("{SCOPE}{number}.{own}")).to_vec(),
            None => leaves(&Config::default())
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>(),
        };
        let nearest = nearest(&key, known.iter().map(String::as_str)).map(str::to_owned);
        return ConfigError::UnknownKey {
            from: from(figment, &key),
            key,
            nearest,
            known: known.join(", "),
        };
    }
    if key.is_empty() {
        let file = error
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.source.as_ref())
            .map(ToString::to_string);
        return ConfigError::File {
            file: file.unwrap_or_default(),
            problem: without_the_line(&error.kind.to_string()),
        };
    }
    ConfigError::Invalid {
        from: from(figment, &key),
        problem: problem(&key, &error.kind),
        key,
    }
}

/// TOML's error shows the line that it cannot read, which may hold a password; its number is enough.
fn without_the_line(error: &str) -> String {
    let shows_it = |line: &&str| {
        line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')
            .starts_with('|')
    };
    let lines = error.lines().map(str::trim_end).filter(|line| !shows_it(line));
    lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(": ")
}

/// What is wrong with a value, without the words of the types behind it.
fn problem(key: &str, kind: &Kind) -> String {
    let found = match kind {
        Kind::Message(words) => return words.clone(),
        Kind::InvalidType(found, _) | Kind::InvalidValue(found, _) => in_words(found),
        Kind::UnknownVariant(word, _) => format!("`{word}`"),
        _ => "this".to_owned(),
    };
    format!("{found} is not what it takes; write {}", takes(key))
}

fn in_words(found: &Actual) -> String {
    match found {
        Actual::Bool(truth) => format!("`{truth}`"),
        Actual::Unsigned(number) => format!("the number {number}"),
        Actual::Signed(number) => format!("the number {number}"),
        Actual::Float(number) => format!("the number {number}"),
        Actual::Str(text) => format!("`{text}`"),
        Actual::Char(c) => format!("`{c}`"),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a section".to_owned(),
        _ => "this".to_owned(),
    }
}

/// What a key takes, by its default.
fn takes(key: &str) -> String {
    match key.strip_prefix(SCOPE).and_then(|rest| rest.split_once('.')) {
        Some((_, own)) => return Scope::takes(own).to_owned(),
        None if key.starts_with("scope") => {
            return "each scope as `[[scope]]`, and its keys below".to_owned();
        }
        None => {}
    }
    let default = leaves(&Config::default())
        .into_iter()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value);
    match default {
        _ if key == "log.format" => "text or json".to_owned(),
        Some(toml::Value::Boolean(_)) => "true or false".to_owned(),
        Some(toml::Value::Float(_)) => "a number from 0 to 1".to_owned(),
        Some(toml::Value::Integer(0)) => "a whole number, 0 or more".to_owned(),
        Some(toml::Value::Integer(_)) => "a whole number, 1 or more".to_owned(),
        Some(toml::Value::String(text)) if text.parse::<HumanDuration>().is_ok() => {
            "a duration with a unit, such as 90s, 20m, 2h or 3d".to_owned()
        }
        Some(_) => "a text in quotes".to_owned(),
        None => format!("a section: `[{key}]`, and its keys below"),
    }
}

/// A layer of which the origin is known by name.
struct Layer {
    origin: String,
    values: Result<Dict, figment::Error>,
}

impl Layer {
    fn defaults() -> Self {
        let values = Value::serialize(Config::default()).map(|value| value.into_dict().unwrap_or_default());
        Self {
            origin: DEFAULT.to_owned(),
            values,
        }
    }

    fn one(origin: &str, key: &str, value: &str) -> Self {
        let nested = figment::util::nest(key, Value::from(value));
        Self {
            origin: origin.to_owned(),
            values: Ok(nested.into_dict().unwrap_or_default()),
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()?))
    }
}
