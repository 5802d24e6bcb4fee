//! How a list is shown: as a table, or as OpenStack's own command line shows lists to scripts.

use comfy_table::Table;
use serde::Serialize;
use serde_json::{Map, Value};
use unprovision_session::{did_you_mean, nearest};

use crate::failure::Usage;
use crate::output::{self, plain};

/// The form of a list, and its columns.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Shape {
    /// How the list is shown on standard output
    #[arg(
        short,
        long,
        visible_short_alias = 'f',
        visible_alias = "format",
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Form,
    /// Show only this column; may be given several times, in their order. The names are the keys of `-o json`
    #[arg(short, long = "column", value_name = "COLUMN")]
    columns: Vec<String>,
}

/// How a list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// A list of objects.
    Json,
    /// A line for each row, below one with the names of the columns.
    Csv,
    /// The values alone, a line for each row.
    Value,
}

impl Shape {
    /// Refuses columns that there are not.
    pub(crate) fn check(&self, all: &[&str]) -> Result<(), Usage> {
        match self.columns.iter().find(|name| !all.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let guess = did_you_mean(nearest(name, all.iter().copied()));
                let all = all.join(", ");
                Err(Usage(format!(
                    "there is no column `{name}`{guess}; there are: {all}"
                )))
            }
        }
    }

    /// Prints the rows, whose keys are `all`. The table for people is their own, unless columns were chosen.
    pub(crate) fn print<T: Serialize>(
        &self,
        rows: &[T],
        all: &[&str],
        table: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let text = match (self.output, self.columns.is_empty()) {
            (Form::Json, true) => serde_json::to_string_pretty(rows)?,
            (Form::Table, true) => table(),
            _ => self.of_columns(rows, all)?,
        };
        // Nothing at all is no line.
        match text.is_empty() {
            true => Ok(()),
            false => output::print(&text),
        }
    }

    fn of_columns<T: Serialize>(&self, rows: &[T], all: &[&str]) -> anyhow::Result<String> {
        let chosen = match self.columns.is_empty() {
            true => all.to_vec(),
            false => self.columns.iter().map(String::as_str).collect(),
        };
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            values.push(serde_json::to_value(row)?);
        }
        let fields = |row: &Value| chosen.iter().map(|name| field(&row[*name])).collect::<Vec<_>>();
        let lines = |separator: &str, shown: fn(&str) -> String| {
            let line = |fields: Vec<String>| {
                let shown = fields.iter().map(|text| shown(text)).collect::<Vec<_>>();
                shown.join(separator)
            };
            values.iter().map(|row| line(fields(row))).collect::<Vec<_>>()
        };
        Ok(match self.output {
            Form::Json => {
                let object = |row: &Value| {
                    let pairs = chosen.iter().map(|name| ((*name).to_owned(), row[*name].clone()));
                    Value::Object(pairs.collect::<Map<_, _>>())
                };
                serde_json::to_string_pretty(&values.iter().map(object).collect::<Vec<_>>())?
            }
            Form::Csv => {
                let mut all = vec![chosen.join(",")];
                all.extend(lines(",", quoted));
                all.join("\n")
            }
            // As there, nothing has a word: otherwise nobody could tell which column is missing.
            Form::Value => lines(" ", or_none).join("\n"),
            Form::Table => {
                let mut table: Table = output::new_table(&chosen);
                for row in &values {
                    table.add_row(fields(row));
                }
                table.to_string()
            }
        })
    }
}

/// A value as one field: lists are joined with a semicolon, and of what became of something the words follow its name.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        Value::Array(all) => all.iter().map(field).collect::<Vec<_>>().join(";"),
        Value::Object(all) => {
            let pairs = all
                .iter()
                .map(|(name, value)| format!("{name}: {}", field(value)));
            pairs.collect::<Vec<_>>().join(";")
        }
        other => other.to_string(),
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "None" } else { text }.to_owned()
}

/// By RFC 4180, but for the line ends, which are this system's. A spreadsheet would take a text that begins like a formula
/// for one.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_one_field_and_no_formula() {
        for (value, expected) in [
            (json!("plain"), "plain"),
            (json!("a, b"), "\"a, b\""),
            (json!("say \"no\""), "\"say \"\"no\"\"\""),
            (json!("two\nlines"), r"two\nlines"),
            (json!("=HYPERLINK(1)"), "'=HYPERLINK(1)"),
            (json!(null), ""),
            (json!(true), "true"),
            (json!(["a", "b"]), "a;b"),
            (json!({ "done": "it, all" }), "\"done: it, all\""),
        ] {
            assert_eq!(quoted(&field(&value)), expected, "{value}");
        }
    }

    fn shape(output: Form, columns: &[&str]) -> Shape {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Shape { output, columns }
    }

    #[test]
    fn columns_are_shown_in_the_order_in_which_they_are_named() {
        let rows = [json!({"a": 1, "b": "x y"}), json!({"a": null, "b": "z"})];
        let all = ["a", "b"];
        for (form, columns, expected) in [
            (Form::Value, &["b", "a"][..], "x y 1\nz None"),
            (Form::Value, &[], "1 x y\nNone z"),
            (Form::Csv, &["a"], "a\n1\n"),
        ] {
            assert_eq!(shape(form, columns).of_columns(&rows, &all).unwrap(), expected);
        }
        let json = shape(Form::Json, &["b"]).of_columns(&rows, &all).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&json).unwrap(),
            json!([{"b": "x y"}, {"b": "z"}])
        );
        assert!(shape(Form::Value, &["b"]).check(&all).is_ok());
        let said = shape(Form::Value, &["bb"]).check(&all).unwrap_err().to_string();
        assert_eq!(
            said,
            "there is no column `bb`, did you mean `b`?; there are: a, b"
        );
    }
}
