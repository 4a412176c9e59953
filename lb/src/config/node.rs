//! The file as a tree in which everything knows its place.
//!
//! The tree is what the rest of this module reads; [`super::yaml`] is the only part that knows how it was written.

use super::{
    Span,
    path::{Path, Step},
    span::Spanned,
};

/// A value of any form.
#[derive(Clone)]
pub(super) struct Node {
    /// Where it stands. A block has no sign of its own: it is where its first key or item begins, without length.
    pub(super) span: Span,
    pub(super) form: Form,
}

#[derive(Clone)]
pub(super) enum Form {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

/// A value without parts. Its type is decided by who reads it: `007` is a key where a key is asked for.
#[derive(Clone)]
pub(super) struct Scalar {
    pub(super) text: String,
    /// Written without quotes, so that it may be a number, a flag or nothing.
    pub(super) plain: bool,
    /// Part of it came from the environment: `text` may be a secret and is never shown.
    pub(super) from_environment: bool,
}

impl Scalar {
    /// Whether it stands for "nothing was said".
    pub(super) fn is_null(&self) -> bool {
        let word = matches!(self.text.as_str(), "~" | "null" | "Null" | "NULL");
        self.plain && (self.text.is_empty() || (word && !self.from_environment))
    }
}

impl Node {
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.form, Form::Scalar(scalar) if scalar.is_null())
    }

    /// The entries of a mapping; none where it is something else.
    pub(super) fn entries(&self) -> &[(Spanned<String>, Self)] {
        match &self.form {
            Form::Map(entries) => entries,
            Form::List(_) | Form::Scalar(_) => &[],
        }
    }

    /// The value under `key`, with the key's own place.
    pub(super) fn entry(&self, key: &str) -> Option<(Span, &Self)> {
        self.entries()
            .iter()
            .find(|(name, _)| name.value == key)
            .map(|(name, node)| (name.span, node))
    }

    /// What is meant: two nodes that no reader of the configuration could tell apart.
    pub(super) fn means_the_same(&self, other: &Self) -> bool {
        match (&self.form, &other.form) {
            (Form::Scalar(a), Form::Scalar(b)) => {
                let number = |scalar: &Scalar| scalar.text.parse::<f64>().ok().filter(|_| scalar.plain);
                (a.is_null() && b.is_null())
                    || (a.is_null() == b.is_null() && a.text == b.text)
                    || number(a).is_some_and(|x| number(b) == Some(x))
            }
            (Form::List(a), Form::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.means_the_same(y))
            }
            (Form::Map(a), Form::Map(_)) => {
                a.len() == other.entries().len()
                    && a.iter().all(|(key, value)| {
                        other
                            .entry(&key.value)
                            .is_some_and(|(_, there)| value.means_the_same(there))
                    })
            }
            _ => false,
        }
    }

    /// The path of the key or value that `span` lies in, such as `providers.gpu.endpoints[0].url`.
    pub(super) fn path_of(&self, span: Span) -> String {
        let mut path = Path::default();
        let mut node = self;
        while let Some((step, next)) = node.part_at(span) {
            path = path.then(&step);
            node = next;
        }
        path.to_string()
    }

    /// The value at a path of keys and items, as [`Path`] writes it.
    pub(super) fn find(&self, path: &str) -> Option<&Self> {
        self.find_from(&Path::default(), path)
    }

    fn find_from(&self, here: &Path, path: &str) -> Option<&Self> {
        let steps: Vec<(Step, &Self)> = match &self.form {
            Form::Scalar(_) => Vec::new(),
            Form::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (Step::Item(index), item))
                .collect(),
            Form::Map(entries) => entries
                .iter()
                .map(|(key, node)| (Step::Key(key.value.clone()), node))
                .collect(),
        };
        steps.into_iter().find_map(|(step, node)| {
            let there = here.then(&step);
            let shown = there.to_string();
            if shown == path {
                Some(node)
            } else if path.starts_with(&shown) {
                node.find_from(&there, path)
            } else {
                None
            }
        })
    }

    /// The outermost value that stands at `span`.
    pub(super) fn value_at(&self, span: Span) -> Option<&Self> {
        let mut node = self;
        while node.span != span {
            node = node.part_at(span)?.1;
        }
        Some(node)
    }

    /// The part of this node that begins last at or before `span`; the parts stand in the order of the text.
    fn part_at(&self, span: Span) -> Option<(Step, &Self)> {
        let begun = |start: usize| start <= span.start;
        match &self.form {
            Form::Scalar(_) => None,
            Form::List(items) => {
                let index = items.iter().rposition(|item| begun(item.span.start))?;
                Some((Step::Item(index), &items[index]))
            }
            Form::Map(entries) => {
                let (key, value) = entries.iter().rfind(|(key, _)| begun(key.span.start))?;
                Some((Step::Key(key.value.clone()), value))
            }
        }
    }
}

#[cfg(test)]
mod tests;
