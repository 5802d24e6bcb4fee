//! Log lines on standard error.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

use crate::config::{ConfigError, Log, LogFormat};
use crate::output;
use crate::progress;

/// The levels by name.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Libraries whose finer levels show what is on the wire.
const TALKATIVE: &[&str] = &["h2", "hyper", "hyper_util", "reqwest", "rustls", "sqlx"];
/// Whose finer levels show a password, and whose errors are told by the guard.
const SECRETIVE: &str = "lapin=off";

/// Begins to log. `RUST_LOG` wins over what is configured.
pub(crate) fn init(log: &Log) -> Result<(), ConfigError> {
    let (text, from) = match std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty()) {
        Some(text) => (text, "RUST_LOG"),
        None => (log.level.clone(), "the configuration"),
    };
    let filter = filter(&text).map_err(|problem| ConfigError::Invalid {
        key: "log.level".to_owned(),
        from: from.to_owned(),
        problem,
    })?;
    output::speak(log.format);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Around)
        .with_timer(SystemTime);
    // It fails only where a subscriber is set already, and nobody else sets one.
    let _ = match log.format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Standard error, without tearing what shows the progress.
struct Around;

impl io::Write for Around {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        progress::around(|| io::stderr().lock().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
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

/// What is logged by this text, or what is wrong with it.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, String> {
    let wrong = |why: &str| {
        format!(
            "`{text}`{why}; write error, warn, info, debug, trace, or directives such as `warn,unprovision=debug`"
        )
    };
    // A word alone would be taken for the name of a library, of which everything is logged.
    let is_word =
        |part: &str| !part.contains(['=', '[']) && !LEVELS.contains(&part.to_ascii_lowercase().as_str());
    if let Some(word) = text.split(',').map(str::trim).find(|part| is_word(part)) {
        return Err(wrong(&format!(": `{word}` is not a level")));
    }
    let filter = EnvFilter::builder()
        .parse(directives(text))
        .map_err(|_| wrong(" cannot be read"))?;
    Ok(match SECRETIVE.parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    })
}
