//! Every key of the configuration's schema is shown in configs/lb.yaml, the page on which users look keys up.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

use super::{Problem, tree::Tree};
use crate::command;

const PAGE: &str = "configs/lb.yaml";

pub(super) fn check(tree: &Tree, lb: &Path) -> Vec<Problem> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Problem::whole(PAGE, "is missing: it shows users every key")];
    };
    let schema = match command::capture(Command::new(lb).arg("schema")) {
        Ok(schema) => schema,
        Err(failure) => {
            return vec![Problem::whole(
                PAGE,
                format!("cannot be compared with the schema: {failure}"),
            )];
        }
    };
    match serde_json::from_str(&schema) {
        Ok(schema) => undocumented(&schema, &page.text),
        Err(error) => vec![Problem::whole(
            PAGE,
            format!("cannot be compared: `lb schema` is not JSON: {error}"),
        )],
    }
}

fn undocumented(schema: &Value, page: &str) -> Vec<Problem> {
    let mut keys = BTreeSet::new();
    collect(schema, &mut keys);
    if keys.is_empty() {
        return vec![Problem::whole(PAGE, "cannot be compared: the schema has no keys")];
    }
    let shown = shown(page);
    let missing = keys.iter().filter(|key| !shown.contains(*key));
    missing
        .map(|key| Problem::whole(PAGE, format!("does not show the key `{key}`")))
        .collect()
}

/// The names of all properties, at any depth.
fn collect<'a>(schema: &'a Value, keys: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                keys.extend(properties.keys().map(String::as_str));
            }
            object.values().for_each(|value| collect(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}

/// All words followed by a colon, in comments as well: a knob that is off by default is often shown in one.
fn shown(page: &str) -> BTreeSet<&str> {
    let ends = page.match_indices(':').map(|(at, _)| &page[..at]);
    ends.filter_map(|text| {
        text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_may_be_shown_in_a_mapping_a_list_or_a_comment() {
        let schema = json!({
            "properties": {"listeners": {"items": {"$ref": "#/$defs/Listener"}}, "lost": {}},
            "$defs": {"Listener": {"properties": {"address": {}, "tls": {"anyOf": [{"properties": {"cert_file": {}}}]}}}}
        });
        let page =
            "listeners:\n  - address: 127.0.0.1:8080   # see lost\n    tls: null   # { cert_file: x }\n";
        let problems: Vec<_> = undocumented(&schema, page)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(problems, ["configs/lb.yaml: does not show the key `lost`"]);
    }

    #[test]
    fn a_schema_without_keys_is_a_problem() {
        assert_eq!(undocumented(&json!({}), "a: 1").len(), 1);
    }
}
