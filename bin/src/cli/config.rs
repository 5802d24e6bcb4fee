//! `unprovision config`: the effective configuration, and where each value comes from.

use std::borrow::Cow;
use std::process::ExitCode;

use serde_json::json;
use unprovision_session::split_login;

use super::Global;
use crate::config::Setting;
use crate::output;

/// Options of `config`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// How it is shown
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "toml")]
    output: Format,
}

const EXAMPLE: &str = "\
Example:
  UNPROVISION_IRONIC__REGION=north unprovision config --os-cloud prod";

/// How the configuration is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// As a file that can be used, with a comment on each value.
    Toml,
    /// An object per key.
    Json,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<ExitCode> {
    let values = global.load([])?.values;
    let text = match args.output {
        Format::Toml => toml(&values),
        Format::Json => {
            let shown = |setting: &Setting| {
                (
                    setting.key.clone(),
                    json!({"value": public(&setting.value), "from": setting.from}),
                )
            };
            serde_json::to_string_pretty(&values.iter().map(shown).collect::<serde_json::Map<_, _>>())?
        }
    };
    output::print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn toml(values: &[Setting]) -> String {
    let mut text = String::new();
    let mut current = "";
    for Setting { key, value, from } in values {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        if section != current {
            text.push_str(&format!("\n[{section}]\n"));
            current = section;
        }
        text.push_str(&format!("{name} = {} # {from}\n", public(value)));
    }
    text
}

/// The value without the users and passwords that somebody may have written into URLs.
fn public(value: &toml::Value) -> toml::Value {
    match value {
        toml::Value::String(text) => {
            let words = text.split(' ').map(public_word);
            toml::Value::String(words.collect::<Vec<_>>().join(" "))
        }
        _ => value.clone(),
    }
}

fn public_word(text: &str) -> Cow<'_, str> {
    let Some((scheme, login, after)) = split_login(text) else {
        return text.into();
    };
    let login = match (login, after) {
        ("", _) => "",
        (_, "") => "***",
        _ => "***@",
    };
    match after.split_once('?') {
        Some((place, parameters)) if parameters.contains("pass") => {
            format!("{scheme}://{login}{place}?***").into()
        }
        _ => format!("{scheme}://{login}{after}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_hidden() {
        for (text, shown) in [
            ("https://user:secret@host/a", "https://***@host/a"),
            ("https://secret@host", "https://***@host"),
            ("https://user:se@cret@host:1/@", "https://***@host:1/@"),
            ("https://host/a@b", "https://host/a@b"),
            ("https://host:1/a@b", "https://host:1/a@b"),
            ("mysql://me:secret", "mysql://***"),
            ("mysql://me:se/cr#e?t@db:3306/j", "mysql://***@db:3306/j"),
            (
                "postgresql://me@db/j?password=secret",
                "postgresql://***@db/j?***",
            ),
            ("postgresql://db/j?host=/run/pg", "postgresql://db/j?host=/run/pg"),
            ("plain", "plain"),
            ("amqps://a:b@h:1/v amqp://c:d@i", "amqps://***@h:1/v amqp://***@i"),
        ] {
            assert_eq!(public(&toml::Value::from(text)).as_str(), Some(shown));
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let setting = |key: &str, from: &str| Setting {
            key: key.into(),
            value: "x \"y\"".into(),
            from: from.into(),
        };
        let text = toml(&[setting("a", "default"), setting("b.c", "--flag")]);
        assert_eq!(text, "a = 'x \"y\"' # default\n\n[b]\nc = 'x \"y\"' # --flag\n");
        assert_eq!(toml::from_str::<toml::Table>(&text).unwrap().len(), 2);
    }
}
