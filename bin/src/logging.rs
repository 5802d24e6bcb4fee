//! Log lines on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

use crate::config::{ConfigError, Log, LogFormat};

/// Libraries whose finer levels show what is on the wire.
const TALKATIVE: &[&str] = &["h2", "hyper", "hyper_util", "reqwest", "rustls", "sqlx"];

/// Begins to log. `RUST_LOG` wins over what is configured.
pub(crate) fn init(log: &Log) -> Result<(), ConfigError> {
    let filter = match std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty()) {
        Some(text) => filter(&text, "RUST_LOG")?,
        None => filter(&directives(&log.level), "the configuration")?,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_timer(SystemTime);
    // It fails only where a subscriber is set already, and nobody else sets one.
    let _ = match log.format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// A plain level is ours; libraries do not go below `info` with it.
fn directives(level: &str) -> String {
    if !matches!(level, "debug" | "trace") {
        return level.to_owned();
    }
    TALKATIVE
        .iter()
        .fold(level.to_owned(), |all, library| format!("{all},{library}=info"))
}

fn filter(text: &str, from: &str) -> Result<EnvFilter, ConfigError> {
    EnvFilter::builder()
        .parse(text)
        .map_err(|error| ConfigError::Invalid {
            key: "log.level".to_owned(),
            from: from.to_owned(),
            problem: format!("{error}; write error, warn, info, debug or trace"),
        })
}
