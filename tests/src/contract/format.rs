//! What a contract file consists of.

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fmt, fs};

use super::Error;

/// One contract file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The file's name without its extension.
    #[serde(skip)]
    pub name: String,
    /// Which facts it is about.
    pub about: String,
    /// What steps use that do not say otherwise.
    #[serde(default)]
    pub defaults: Defaults,
    /// Values with a name, to be used as `${name}`.
    #[serde(default)]
    pub vars: Map<String, Value>,
    /// The requests, in their order.
    pub tests: Vec<Step>,
    /// What is sent at the end, whatever happened before.
    #[serde(default)]
    pub cleanup: Vec<Step>,
}

/// What steps use that do not say otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The service.
    pub service: Option<Service>,
    /// The API version.
    pub version: Option<String>,
}

/// One request and what is expected of its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The fact, in words.
    pub name: String,
    /// Whom it is asked of.
    pub service: Option<Service>,
    /// Method and path: `GET /v1/nodes`.
    pub request: String,
    /// The API version to ask for; `none` sends no version header.
    pub version: Option<String>,
    /// The token to send.
    #[serde(default)]
    pub token: Token,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, sent as JSON.
    #[serde(default, deserialize_with = "present")]
    pub body: Option<Value>,
    /// What the answer must look like.
    #[serde(default)]
    pub expect: Expect,
    /// Sends the request again and again until the answer looks like this.
    pub repeat_until: Option<RepeatUntil>,
    /// What to keep of the answer: a name, and a JSON pointer into the body or `header:NAME`.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
}

/// A service under contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// The identity service.
    Keystone,
    /// The bare metal service.
    Ironic,
    /// The inventory of what can be scheduled.
    Placement,
}

/// Which token goes with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Token {
    /// The one that works: system scope for Ironic, project scope for Placement, none for Keystone.
    #[default]
    Default,
    /// None.
    None,
    /// One that Keystone never gave out.
    Garbage,
    /// One with project scope.
    Project,
    /// One with system scope.
    System,
    /// This one, after variables are put in.
    Text(String),
}

/// What an answer must look like. What is not mentioned is not looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The status.
    pub status: Option<Status>,
    /// Headers, each a matcher for its value.
    #[serde(default)]
    pub headers: BTreeMap<String, Value>,
    /// A matcher for the body.
    #[serde(default, deserialize_with = "present")]
    pub body: Option<Value>,
    /// A matcher for the error's code (`errors[0].code`, which Placement alone has).
    #[serde(default, deserialize_with = "present")]
    pub error_code: Option<Value>,
    /// A piece of the error's text, wherever the service puts it.
    pub message_contains: Option<String>,
}

/// What is waited for, and how long.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepeatUntil {
    /// The status.
    pub status: Option<Status>,
    /// A matcher for the body.
    #[serde(default, deserialize_with = "present")]
    pub body: Option<Value>,
    /// For how long at most.
    #[serde(deserialize_with = "duration")]
    pub within: Duration,
}

/// One status, or several that will do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Status {
    /// This one.
    One(u16),
    /// One of these.
    OneOf(Vec<u16>),
}

impl Service {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keystone => "keystone",
            Self::Ironic => "ironic",
            Self::Placement => "placement",
        }
    }
}

impl Status {
    /// Whether a status will do.
    pub fn accepts(&self, status: u16) -> bool {
        match self {
            Self::One(one) => *one == status,
            Self::OneOf(several) => several.contains(&status),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(one) => write!(f, "{one}"),
            Self::OneOf(several) => write!(f, "one of {several:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.as_str() {
            "default" => Self::Default,
            "none" => Self::None,
            "garbage" => Self::Garbage,
            "project" => Self::Project,
            "system" => Self::System,
            _ => Self::Text(text),
        })
    }
}

impl From<&RepeatUntil> for Expect {
    fn from(until: &RepeatUntil) -> Self {
        Self {
            status: until.status.clone(),
            body: until.body.clone(),
            ..Self::default()
        }
    }
}

/// A value that is there even when it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    SignedDuration::deserialize(deserializer).map(SignedDuration::unsigned_abs)
}

/// Reads all contract files of a directory, in the order of their names.
pub fn load_dir(dir: &Path) -> Result<Vec<File>, Error> {
    let unreadable = |source| Error::Read {
        path: dir.to_owned(),
        source,
    };
    let entries = fs::read_dir(dir)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable)?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().map(|path| load_file(path)).collect()
}

/// Reads one contract file.
pub fn load_file(path: &Path) -> Result<File, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let problem = |problem| Error::Parse {
        path: path.to_owned(),
        problem,
    };
    let mut file: File = serde_saphyr::from_str(&text).map_err(|error| problem(error.to_string()))?;
    file.name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if let Some(step) = file.tests.iter().find(|step| !step.expects_something()) {
        return Err(problem(format!("the test `{}` expects nothing", step.name)));
    }
    Ok(file)
}

impl Step {
    fn expects_something(&self) -> bool {
        self.expect.status.is_some()
            || self
                .repeat_until
                .as_ref()
                .is_some_and(|until| until.status.is_some())
    }
}
