//! Whether an answer is as the description says, as far as this one says anything.

use serde_json::Value;

/// The first thing that is not as it should be.
pub(crate) fn misfit(description: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let named = description.pointer(name.trim_start_matches('#')).unwrap();
        return misfit(description, named, value, place);
    }
    for combined in ["oneOf", "anyOf"] {
        if let Some(any) = schema[combined].as_array() {
            let fits = |one: &Value| misfit(description, one, value, place).is_none();
            return (!any.iter().any(fits)).then(|| format!("{place}: {value} is none of {schema}"));
        }
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    if !kinds.contains(&kind(value)) {
        return Some(format!("{place}: {value} is no {kinds:?}"));
    }
    match value {
        Value::Object(fields) => {
            let known = schema["properties"].as_object().unwrap();
            let required = schema["required"].as_array().into_iter().flatten();
            let mut missing = required.filter(|name| !fields.contains_key(name.as_str().unwrap()));
            if let Some(missing) = missing.next() {
                return Some(format!("{place}: {missing} is missing"));
            }
            fields.iter().find_map(|(name, field)| {
                let place = format!("{place}.{name}");
                match known.get(name) {
                    Some(schema) => misfit(description, schema, field, &place),
                    None if schema["additionalProperties"] == true => None,
                    None => Some(format!("{place} is not described")),
                }
            })
        }
        Value::Array(items) => items
            .iter()
            .find_map(|item| misfit(description, &schema["items"], item, &format!("{place}[]"))),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let schema = serde_json::json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
    let misfit = |value| misfit(&Value::Null, &schema, &value, "it");
    assert_eq!(misfit(serde_json::json!({"name": "a"})), None);
    for wrong in [
        serde_json::json!({}),
        serde_json::json!({"name": 1}),
        serde_json::json!({"name": "a", "more": 1}),
        serde_json::json!([]),
    ] {
        assert!(misfit(wrong.clone()).is_some(), "{wrong}");
    }
}
