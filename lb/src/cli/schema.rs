//! `lb schema`: the shape of the configuration for editors.

use std::io::{self, Write as _};

use crate::config;

/// Prints the JSON Schema of lb.yaml.
pub(super) fn schema() -> io::Result<()> {
    anstream::stdout().write_all(config::schema().as_bytes())
}
