//! What goes to standard output, and single lines to standard error.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use ironic_client::ProvisionState;
use serde::Serialize;
use serde_json::json;
use unprovision::NodeUuid;
use unprovision::cloud::{Clock, SystemClock};
use unprovision::core::Case;
use unprovision::orchestrator::{CaseReport, RunError};
use uuid::Uuid;

use crate::config::LogFormat;
use crate::progress;

/// How the result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// A list of objects.
    Json,
}

/// What became of one node.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Row {
    /// Its case was worked on.
    Report(CaseReport),
    /// Its case could not be carried on; nobody knows how far it is.
    Lost {
        /// The node.
        node: NodeUuid,
        /// Its name.
        name: Option<String>,
        /// The instance.
        instance: Option<Uuid>,
        /// The strategy's name.
        strategy: String,
        /// Always `error`.
        outcome: &'static str,
        /// Unknown.
        provision_state: Option<ProvisionState>,
        /// Why.
        reason: String,
        /// Unknown.
        held: Option<bool>,
        /// Unknown.
        freed_after_s: Option<f64>,
        /// Unknown.
        returned_after_s: Option<f64>,
    },
}

/// A node on its way, as a row names it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The node.
    pub(crate) node: NodeUuid,
    /// Its name.
    pub(crate) name: Option<String>,
    /// The instance, where anybody knows it.
    pub(crate) instance: Option<Uuid>,
    /// The strategy's name.
    pub(crate) strategy: String,
}

impl From<&Case> for Subject {
    fn from(case: &Case) -> Self {
        Self {
            node: case.node,
            name: case.found.name.clone(),
            instance: case.instance(),
            strategy: case.strategy.clone(),
        }
    }
}

impl Row {
    /// The row of a case.
    pub(crate) fn new(subject: Subject, result: Result<CaseReport, RunError>) -> Self {
        let Subject {
            node,
            name,
            instance,
            strategy,
        } = subject;
        match result {
            Ok(report) => Self::Report(report),
            Err(error) => Self::Lost {
                node,
                name,
                instance,
                strategy,
                outcome: "error",
                provision_state: None,
                reason: crate::failure::with_next(&error),
                held: None,
                freed_after_s: None,
                returned_after_s: None,
            },
        }
    }
}

/// Prints the result.
pub(crate) fn print_rows(rows: &[Row], format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => print(&serde_json::to_string_pretty(rows)?),
        Format::Table if rows.is_empty() => Ok(()),
        Format::Table => print(&table(rows)?),
    }
}

/// A line per node, and below them the reasons, which are too long for a column.
fn table(rows: &[Row]) -> anyhow::Result<String> {
    const COLUMNS: [&str; 8] = [
        "node",
        "instance",
        "strategy",
        "outcome",
        "provision_state",
        "held",
        "freed_after_s",
        "returned_after_s",
    ];
    let mut table = new_table(&COLUMNS);
    let mut reasons = String::new();
    for row in rows {
        let mut row = serde_json::to_value(row)?;
        if row["name"].is_string() {
            row["node"] = row["name"].take();
        }
        reasons.push_str(&format!("\n{}: {}", shown(&row["node"]), shown(&row["reason"])));
        table.add_row(COLUMNS.map(|column| shown(&row[column])));
    }
    Ok(format!("{table}{reasons}"))
}

fn shown(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::Bool(true) => "yes".to_owned(),
        serde_json::Value::Bool(false) => "no".to_owned(),
        serde_json::Value::String(text) => plain(text),
        serde_json::Value::Number(number) => number
            .as_f64()
            .map_or_else(|| number.to_string(), |secs| format!("{secs:.1}")),
        other => other.to_string(),
    }
}

/// On a terminal as wide as this the other columns have room enough beside a whole UUID.
const WIDE: u16 = 110;

/// The columns of UUIDs, which nobody can copy in pieces.
const UUIDS: [&str; 4] = ["instance", "uuid", "case", "node"];

/// An empty table with these columns.
pub(crate) fn new_table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(ASCII_FULL_CONDENSED)
        .set_header(columns.iter().copied());
    if let Some(width) = width() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width);
        // What is named first is searched for, and copied.
        for (index, name) in columns.iter().enumerate() {
            if index == 0 || (width >= WIDE && UUIDS.contains(name)) {
                let column = table.column_mut(index);
                column.map(|column| column.set_constraint(ColumnConstraint::ContentWidth));
            }
        }
    }
    table
}

/// How wide the terminal is that is written to; nothing where none is.
fn width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|width| *width > 0)
}

/// Text of others as it can be printed: nothing in it moves the cursor, forges a line or turns the writing round.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => plain.extend(c.escape_unicode()),
            c if c.is_control() => plain.extend(c.escape_default()),
            c => plain.push(c),
        }
    }
    plain
}

/// How a node is called: by its name, or else by its UUID.
pub(crate) fn node_name(name: Option<&str>, uuid: impl fmt::Display) -> String {
    name.map_or_else(|| uuid.to_string(), plain)
}

/// Prints to standard output. Who does not read to the end has read enough.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let written = progress::around(|| {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush())
    });
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|error| anyhow!("cannot write to standard output: {error}")),
    }
}

/// Whether what is said is for machines.
static FOR_MACHINES: AtomicBool = AtomicBool::new(false);

/// From here on what is said looks like this.
pub(crate) fn speak(format: LogFormat) {
    FOR_MACHINES.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Whether what is said is for machines.
pub(crate) fn is_for_machines() -> bool {
    FOR_MACHINES.load(Ordering::Relaxed)
}

/// Prints lines to standard error, or one object. Where nobody reads it, the work goes on all the same.
pub(crate) fn say(lines: &str) {
    match is_for_machines() {
        true => say_object(&json!({"timestamp": SystemClock.now(), "message": lines})),
        false => say_to_somebody(lines),
    }
}

/// Prints one object in one line to standard error.
pub(crate) fn say_object(object: &serde_json::Value) {
    let line = plain_json(object);
    let _ = progress::around(|| writeln!(io::stderr().lock(), "{line}"));
}

/// JSON may have characters as they are that would move the cursor or turn the writing round.
fn plain_json(object: &serde_json::Value) -> String {
    let mut plain = String::new();
    for c in object.to_string().chars() {
        match c {
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{7f}'..='\u{9f}' => {
                plain.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => plain.push(c),
        }
    }
    plain
}

/// Prints lines to the person at the terminal, whatever the format is.
pub(crate) fn say_to_somebody(lines: &str) {
    let lines = lines.split('\n').map(plain).collect::<Vec<_>>().join("\n");
    let _ = progress::around(|| writeln!(io::stderr().lock(), "{lines}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_same_text_in_plain_characters() {
        let object = json!({"message": "\u{202e}x\u{9b}31m\u{1b}\n"});
        let said = plain_json(&object);
        assert_eq!(said, r#"{"message":"\u202ex\u009b31m\u001b\n"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), object);
    }

    #[test]
    fn what_would_move_the_cursor_is_shown_instead() {
        for (text, shown) in [
            ("größer, \"quoted\" \\ 中", "größer, \"quoted\" \\ 中"),
            ("a\u{1b}[2Jb", r"a\u{1b}[2Jb"),
            ("a\r\nb\tc", r"a\r\nb\tc"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("\u{202e}x\u{2066}\u{2028}", r"\u{202e}x\u{2066}\u{2028}"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }
}
