//! What the file may say already and this version does not do yet.
//!
//! Such a knob at its default promises nothing, so it is accepted with a warning; set otherwise it would be a promise
//! that is not kept, so it is refused. Whoever builds a knob's machinery deletes its row here and reads it in
//! [`super::resolve`].

mod find;
mod table;

use self::{
    find::{Found, find},
    table::{LATER, Later, WORDS},
};
use super::{
    Span,
    diagnostic::Diagnostic,
    explain::Origin,
    node::{Form, Node},
    path::Path,
    resolve::Context,
    yaml,
};

/// Reports every such key that is written, and notes the defaults of all.
pub(super) fn check(cx: &mut Context<'_>) {
    for row in LATER {
        let default = default_of(row);
        for found in find(&cx.document.root, row.key) {
            match found.node {
                Some(node) => written(cx, row, &default, &found, node),
                None => note_defaults(cx, &found.path, &default),
            }
        }
    }
    for row in WORDS {
        for found in find(&cx.document.root, row.key) {
            let Some(node) = found.node.filter(|node| !node.is_null()) else {
                continue;
            };
            let word = matches!(&node.form, Form::Scalar(s) if row.built.contains(&s.text.as_str()));
            if !word {
                let built = row
                    .built
                    .iter()
                    .map(|word| format!("`{word}`"))
                    .collect::<Vec<_>>()
                    .join(" or ");
                cx.report(
                    not_yet(node.span, row.what, &found.path.to_string()).help(format!("write {built}")),
                );
            }
        }
    }
}

fn written(cx: &mut Context<'_>, row: &Later, default: &Node, found: &Found<'_>, node: &Node) {
    let mut differing = Vec::new();
    differences(node, default, &found.path, &mut differing);
    if differing.is_empty() {
        let message = format!("{} is not in this version: the setting does nothing", row.what);
        cx.report(Diagnostic::warning("W900", found.key, message).at(found.path.to_string()));
    }
    for (path, span) in differing {
        // A value that no version takes has been reported already.
        let known = cx
            .diagnostics
            .iter()
            .any(|known| known.primary.span == span && known.code.starts_with('E'));
        if !known {
            let help = format!("leave it out, or keep its default: {}", one_line(row.default));
            cx.report(not_yet(span, row.what, &path.to_string()).help(help));
        }
    }
    note_written(cx, &found.path, node, default);
}

fn not_yet(span: Span, what: &str, key: &str) -> Diagnostic {
    Diagnostic::error("E900", span, format!("{what} is not in this version of lb")).at(key)
}

fn one_line(default: &str) -> String {
    default.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What in `node` says otherwise than `default`; what is left out of a block is at its default.
fn differences(node: &Node, default: &Node, path: &Path, into: &mut Vec<(Path, Span)>) {
    match (&node.form, &default.form) {
        (Form::Map(entries), Form::Map(_)) => {
            for (key, value) in entries {
                match default.entry(&key.value) {
                    Some((_, default)) => differences(value, default, &path.key(&key.value), into),
                    None => into.push((path.key(&key.value), key.span)),
                }
            }
        }
        _ if node.is_null() || node.means_the_same(default) => {}
        _ => into.push((path.clone(), node.span)),
    }
}

fn note_defaults(cx: &mut Context<'_>, path: &Path, default: &Node) {
    match &default.form {
        Form::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                note_defaults(cx, &path.key(&key.value), value);
            }
        }
        _ => note(cx, path, spell(default), default, Origin::Default),
    }
}

fn note_written(cx: &mut Context<'_>, path: &Path, node: &Node, default: &Node) {
    let (Form::Map(_), Form::Map(entries)) = (&node.form, &default.form) else {
        let value = if node.means_the_same(default) {
            spell(default)
        } else {
            cx.document.value_at(node.span)
        };
        return note(
            cx,
            path,
            value,
            default,
            Origin::Line(cx.document.line(node.span)),
        );
    };
    for (key, default) in entries {
        let path = path.key(&key.value);
        match node.entry(&key.value) {
            Some((_, node)) => note_written(cx, &path, node, default),
            None => note_defaults(cx, &path, default),
        }
    }
}

fn note(cx: &mut Context<'_>, path: &Path, value: String, default: &Node, origin: Origin) {
    let key = path.to_string();
    cx.settings.push(super::Setting {
        key,
        value,
        default: Some(spell(default)),
        origin,
    });
}

/// A default as the file would say it.
fn spell(default: &Node) -> String {
    match &default.form {
        Form::Scalar(scalar) if scalar.is_null() => "null".to_owned(),
        Form::Scalar(scalar) => scalar.text.clone(),
        Form::List(items) => format!("[{}]", items.iter().map(spell).collect::<Vec<_>>().join(", ")),
        Form::Map(entries) => {
            let entry = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", key.value, spell(value)));
            format!("{{{}}}", entry.collect::<Vec<_>>().join(", "))
        }
    }
}

fn default_of(row: &Later) -> Node {
    yaml::read(row.default).expect("the table's defaults are YAML, as a test shows")
}

#[cfg(test)]
mod tests;
