//! One problem with the configuration, and what to do about it.

use super::Span;

/// Whether a problem stops lb from using the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, but somebody should look.
    Warning,
}

/// One problem with the configuration.
///
/// No text of it ever holds a value from the environment or from a secret: what is shown of a value is what the file
/// says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// `E…` or `W…`, the same for the same kind of problem for ever.
    pub code: &'static str,
    /// Whether it is fatal.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The path of the key, such as `providers.gpu.endpoints[0].url`; empty for the file as a whole.
    pub key: String,
    /// Where it is.
    pub primary: Label,
    /// The other half of a contradiction.
    pub secondary: Vec<Label>,
    /// How to mend it.
    pub help: Vec<String>,
}

/// A remark on a stretch of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The stretch.
    pub span: Span,
    /// The remark; it may be empty.
    pub text: String,
}

impl Diagnostic {
    pub(super) fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, span, message.into())
    }

    pub(super) fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, span, message.into())
    }

    fn new(code: &'static str, severity: Severity, span: Span, message: String) -> Self {
        let primary = Label {
            span,
            text: String::new(),
        };
        Self {
            code,
            severity,
            message,
            key: String::new(),
            primary,
            secondary: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Says something about the place itself.
    pub(super) fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Points at the other half.
    pub(super) fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Says how to mend it.
    pub(super) fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Says how to mend it, where that is known.
    pub(super) fn help_if(mut self, text: Option<String>) -> Self {
        self.help.extend(text);
        self
    }

    /// Names the key.
    pub(super) fn at(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }
}
