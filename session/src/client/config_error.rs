//! What can be wrong with a cloud's configuration.

use std::path::PathBuf;

use super::{did_you_mean, nearest};

/// Why there is no usable configuration of a cloud. The texts contain no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Nothing says which cloud is meant.
    #[error(
        "no cloud is chosen: name one (OS_CLOUD), or set OS_AUTH_URL or OS_AUTH_TYPE; {}",
        list("clouds", known)
    )]
    NoCloud {
        /// The clouds in the files.
        known: Vec<String>,
    },
    /// A cloud of this name is in none of the files.
    #[error("there is no cloud `{cloud}`{}; {} (looked into {})",
        did_you_mean(nearest(cloud, known.iter().map(String::as_str))),
        list("clouds", known), paths(searched))]
    UnknownCloud {
        /// The name that was looked for.
        cloud: String,
        /// The clouds that there are.
        known: Vec<String>,
        /// The files that were read, or looked for where there are none.
        searched: Vec<PathBuf>,
    },
    /// A cloud's `profile` is in none of the files.
    #[error("cloud `{cloud}` has the profile `{profile}`, which is in no clouds-public.yaml{}; {}",
        did_you_mean(nearest(profile, known.iter().map(String::as_str))),
        list("profiles", known))]
    UnknownProfile {
        /// The cloud.
        cloud: String,
        /// The profile that was looked for.
        profile: String,
        /// The profiles that there are.
        known: Vec<String>,
    },
    /// A file cannot be read or is not what it should be.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A setting that this cloud needs is nowhere.
    #[error("cloud `{cloud}`: `{key}` is missing: {reason}")]
    Missing {
        /// The cloud.
        cloud: String,
        /// The setting.
        key: String,
        /// Why it is needed.
        reason: String,
    },
    /// A setting cannot be used.
    #[error("cloud `{cloud}`: `{key}` ({from}): {problem}")]
    Invalid {
        /// The cloud.
        cloud: String,
        /// The setting.
        key: String,
        /// The file, variable or caller that has it.
        from: String,
        /// What is wrong.
        problem: String,
    },
    /// The caller demands a setting that does not exist.
    #[error("there is no setting `{key}`{}", did_you_mean(nearest.as_deref()))]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest that exists.
        nearest: Option<String>,
    },
    /// The HTTP client cannot be built from these TLS settings.
    #[error("cloud `{cloud}`: no HTTPS client can be built: {problem}")]
    Client {
        /// The cloud.
        cloud: String,
        /// What is wrong.
        problem: String,
    },
}

fn list(what: &str, names: &[String]) -> String {
    if names.is_empty() {
        format!("there are no {what}")
    } else {
        format!("{what}: {}", names.join(", "))
    }
}

fn paths(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
