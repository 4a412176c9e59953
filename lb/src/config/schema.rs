//! The shape of the file for editors.

use super::raw;

/// The file's JSON Schema, as text that ends in a line end.
pub fn schema() -> String {
    let schema = schemars::schema_for!(raw::File);
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}
