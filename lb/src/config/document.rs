//! The file as it was read: its text for people, its tree for [`super::resolve`].

use super::{
    Span,
    diagnostic::Diagnostic,
    interpolate::{self, Environment},
    mask,
    node::{Form, Node},
    span::Spanned,
    yaml,
};

/// A file that is YAML, and in which every variable has its value.
pub(super) struct Document {
    pub(super) root: Node,
    /// The text with every secret masked, at the same offsets.
    pub(super) text: String,
}

impl Document {
    /// Reads `text`; on a fault gives the masked text to show with it.
    pub(super) fn read(
        text: &str,
        environment: Environment<'_>,
    ) -> Result<(Self, Vec<Diagnostic>), (String, Vec<Diagnostic>)> {
        let mut root = match yaml::read(text) {
            Ok(root) => root,
            Err(fault) => return Err((mask::text(text), vec![*fault])),
        };
        let mut problems = interpolate::expand(&mut root, text, environment);
        for problem in &mut problems {
            problem.key = root.path_of(problem.primary.span);
        }
        let text = mask::document(text, &root);
        Ok((Self { root, text }, problems))
    }

    /// What the file says at `span`, on one line.
    pub(super) fn shown(&self, span: Span) -> String {
        let written = self.text.get(span.range()).unwrap_or_default();
        written.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The value at `span` in one spelling, `[1, 2]` for any list; of a variable, its name.
    pub(super) fn value_at(&self, span: Span) -> String {
        self.root
            .value_at(span)
            .map_or_else(|| self.shown(span), |node| self.spell(node))
    }

    fn spell(&self, node: &Node) -> String {
        let join = |parts: Vec<String>| parts.join(", ");
        match &node.form {
            Form::Scalar(scalar) if scalar.from_environment => self.shown(node.span),
            Form::Scalar(scalar) if scalar.is_null() => "null".to_owned(),
            // From the masked text, with its quotes off.
            Form::Scalar(_) => self.shown(node.span).trim_matches(['"', '\'']).to_owned(),
            Form::List(items) => format!("[{}]", join(items.iter().map(|item| self.spell(item)).collect())),
            Form::Map(entries) => {
                let entry =
                    |(key, value): &(Spanned<String>, Node)| format!("{}: {}", key.value, self.spell(value));
                format!("{{{}}}", join(entries.iter().map(entry).collect()))
            }
        }
    }

    /// The line of a byte, from 1.
    pub(super) fn line(&self, span: Span) -> usize {
        self.text[..span.start.min(self.text.len())].matches('\n').count() + 1
    }
}
