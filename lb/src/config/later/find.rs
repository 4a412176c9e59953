//! Finds the places that a key of the table stands for.

use crate::config::{
    Span,
    node::{Form, Node},
    path::Path,
};

/// A place that a key of the table leads to, whether or not the file says anything there.
pub(super) struct Found<'a> {
    pub(super) path: Path,
    pub(super) key: Span,
    pub(super) node: Option<&'a Node>,
}

/// All places that `pattern` leads to whose surroundings are written.
pub(super) fn find<'a>(root: &'a Node, pattern: &str) -> Vec<Found<'a>> {
    let start = Found {
        path: Path::default(),
        key: root.span,
        node: Some(root),
    };
    pattern.split('.').fold(vec![start], |places, step| {
        places.iter().flat_map(|place| place.step(step)).collect()
    })
}

impl Found<'_> {
    fn step(&self, step: &str) -> Vec<Self> {
        let Some(node) = self.node else {
            // Below a block that is left out everything is at its default; there are no names to go through.
            return if step == "*" {
                Vec::new()
            } else {
                vec![self.missing(step)]
            };
        };
        match (&node.form, step) {
            (Form::Map(entries), "*") => {
                let found = entries.iter().map(|(key, value)| Self {
                    path: self.path.key(&key.value),
                    key: key.span,
                    node: Some(value),
                });
                found.collect()
            }
            (Form::List(items), "*") => {
                let found = items.iter().enumerate().map(|(index, item)| Self {
                    path: self.path.item(index),
                    key: item.span,
                    node: Some(item),
                });
                found.collect()
            }
            (_, "*") => Vec::new(),
            _ => match node.entry(step) {
                Some((key, value)) => vec![Self {
                    path: self.path.key(step),
                    key,
                    node: Some(value),
                }],
                None => vec![self.missing(step)],
            },
        }
    }

    fn missing(&self, step: &str) -> Self {
        Self {
            path: self.path.key(step),
            key: self.key,
            node: None,
        }
    }
}
