//! What is in force, and why: `lb check --explain`.

use std::fmt;

/// One setting in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its path.
    pub key: String,
    /// Its value as the file would say it. A secret is `set`, and what came from the environment is shown by the
    /// variable's name.
    pub value: String,
    /// Its value if the file did not say anything; `None` where the file must.
    pub default: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Where a setting's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file does not say anything.
    Default,
    /// Another setting, named by its path.
    Inherited(String),
    /// This line of the file.
    Line(usize),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}  # ", self.key, self.value)?;
        match &self.origin {
            Origin::Default => f.write_str("default"),
            Origin::Inherited(from) => write!(f, "from {from}"),
            Origin::Line(line) => write!(f, "line {line}"),
        }
    }
}
