//! What of two answers must be the same: everything but times, places, names of requests, and the wording of errors.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The answer without what is another one each time.
pub(crate) fn normal(value: &Value, root: &str) -> Value {
    if let Some(code) = error(value) {
        return code;
    }
    tidy(value, root)
}

/// An error's status and codes; the words are the server's own.
fn error(value: &Value) -> Option<Value> {
    if let Some(first) = value.pointer("/errors/0") {
        let worded = first["detail"].as_str().is_some_and(|text| !text.is_empty());
        return Some(json!({
            "error": first["status"], "code": first["code"], "title": first["title"], "worded": worded,
        }));
    }
    let text = value.get("error_message")?;
    let inner = match text {
        Value::String(text) => serde_json::from_str::<Value>(text).ok()?,
        other => other.clone(),
    };
    let worded = ["faultstring", "description"]
        .iter()
        .any(|key| inner[*key].as_str().is_some_and(|text| !text.is_empty()));
    Some(json!({ "error": inner.get("faultcode"), "worded": worded }))
}

fn tidy(value: &Value, root: &str) -> Value {
    match value {
        Value::String(text) => Value::String(tidy_text(text, root)),
        Value::Array(elements) => {
            let mut tidied = elements
                .iter()
                .map(|element| tidy(element, root))
                .collect::<Vec<_>>();
            // No service promises an order.
            tidied.sort_by_key(Value::to_string);
            Value::Array(tidied)
        }
        Value::Object(members) => {
            let tidied = members
                .iter()
                .filter(|(key, _)| !is_anothers(key))
                .map(|(key, value)| (key.clone(), tidy(value, root)));
            Value::Object(tidied.collect::<Map<_, _>>())
        }
        // Python's 1.0 is JSON's 1.
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => {
                json!(format!("{float:.0}").parse::<i64>().ok())
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

/// What depends on how the lab is set up or is a driver's own, and nobody relies on.
fn is_anothers(key: &str) -> bool {
    ["conductor", "reservation", "driver_internal_info"].contains(&key) || key.ends_with("_interface")
}

fn tidy_text(text: &str, root: &str) -> String {
    let is_time = text.parse::<Timestamp>().is_ok() || format!("{text}Z").parse::<Timestamp>().is_ok();
    match is_time {
        true => "TIME".to_owned(),
        false => text.replace(root, "ROOT"),
    }
}

/// Where two differ.
pub(crate) fn differences(ours: &Value, real: &Value) -> Vec<String> {
    let mut all = Vec::new();
    walk("body", ours, real, &mut all);
    all
}

fn walk(at: &str, ours: &Value, real: &Value, all: &mut Vec<String>) {
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => {
            let mut keys = ours.keys().chain(real.keys()).collect::<Vec<_>>();
            keys.sort();
            keys.dedup();
            for key in keys {
                let at = format!("{at}/{key}");
                match (ours.get(key), real.get(key)) {
                    (Some(ours), Some(real)) => walk(&at, ours, real, all),
                    (Some(ours), None) => all.push(format!("{at}: sandbox {ours}, real nothing")),
                    (None, Some(real)) => all.push(format!("{at}: sandbox nothing, real {real}")),
                    (None, None) => {}
                }
            }
        }
        (ours, real) if ours == real => {}
        (ours, real) => all.push(format!("{at}: sandbox {ours}, real {real}")),
    }
}
