//! Problems as people and programs read them.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::{
    Span,
    diagnostic::{Diagnostic, Label, Severity},
};

/// All problems of one file, with as much of the file as it takes to show them.
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) file: String,
    /// The file with its secrets masked.
    pub(super) text: String,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// The problems in the order of the file.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// How many of them are fatal.
    pub fn errors(&self) -> usize {
        self.diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .count()
    }

    /// How many of them are not.
    pub fn warnings(&self) -> usize {
        self.diagnostics.len() - self.errors()
    }

    /// This report and `other`, which is about the same file.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.diagnostics.extend(other.diagnostics);
        self.diagnostics
            .sort_by_key(|diagnostic| diagnostic.primary.span.start);
        self
    }

    /// One line: `lb.yaml: 2 errors, 1 warning`.
    pub fn summary(&self) -> String {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (errors, warnings) = (count(self.errors(), "error"), count(self.warnings(), "warning"));
        match (self.errors(), self.warnings()) {
            (0, 0) => format!("{}: ok", self.file),
            (0, _) => format!("{}: ok, {warnings}", self.file),
            _ => format!("{}: {errors}, {warnings}", self.file),
        }
    }

    /// The problems as a compiler shows them, each with the line it is about; empty where there are none.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut out = String::new();
        for diagnostic in &self.diagnostics {
            out.push_str(&renderer.render(&[self.group(diagnostic)]));
            out.push_str("\n\n");
        }
        out
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let annotation = |kind: AnnotationKind, label: &'a Label| {
            let annotation = kind.span(self.visible(label.span).range());
            if label.text.is_empty() {
                annotation
            } else {
                annotation.label(label.text.as_str())
            }
        };
        let snippet = Snippet::source(self.text.as_str())
            .path(self.file.as_str())
            .annotation(annotation(AnnotationKind::Primary, &diagnostic.primary))
            .annotations(
                diagnostic
                    .secondary
                    .iter()
                    .map(|label| annotation(AnnotationKind::Context, label)),
            );
        let title = level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code);
        let help = diagnostic
            .help
            .iter()
            .map(|help| Level::HELP.message(help.as_str()));
        title.element(snippet).elements(help)
    }

    /// What to underline: something, and on one line. Of a block, that is its first word.
    fn visible(&self, span: Span) -> Span {
        let start = span.start.min(self.text.len());
        let rest = &self.text[start..];
        let ends = |end: fn(char) -> bool| start + rest.find(end).unwrap_or(rest.len());
        let word = ends(|c| c.is_whitespace() || c == ':');
        let line = ends(|c| c == '\n');
        Span {
            start,
            end: if span.end <= start {
                word
            } else {
                span.end.min(line)
            },
        }
    }

    /// The problems as one JSON object.
    pub fn to_json(&self) -> String {
        let diagnostics = self.diagnostics.iter().map(|diagnostic| JsonDiagnostic {
            code: diagnostic.code,
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: &diagnostic.message,
            key: &diagnostic.key,
            place: self.place(&diagnostic.primary),
            related: diagnostic
                .secondary
                .iter()
                .map(|label| self.place(label))
                .collect(),
            help: &diagnostic.help,
        });
        let report = JsonReport {
            ok: self.errors() == 0,
            file: &self.file,
            diagnostics: diagnostics.collect(),
        };
        serde_json::to_string_pretty(&report).expect("strings and numbers always become JSON")
    }

    /// Line and column from 1, the column in characters.
    fn place<'a>(&self, label: &'a Label) -> JsonPlace<'a> {
        let before = &self.text[..label.span.start.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        JsonPlace {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            label: &label.text,
        }
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    ok: bool,
    file: &'a str,
    diagnostics: Vec<JsonDiagnostic<'a>>,
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: &'a str,
    severity: &'a str,
    message: &'a str,
    key: &'a str,
    #[serde(flatten)]
    place: JsonPlace<'a>,
    related: Vec<JsonPlace<'a>>,
    help: &'a [String],
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    line: usize,
    column: usize,
    label: &'a str,
}
