//! Takes secrets out of the text before any of it is shown.
//!
//! A diagnostic prints lines of the file, and a key may stand in one. Masking replaces it by asterisks of the same
//! length, so that every offset stays what it was. What stands between `${` and `}` is a name, and stays.

use super::{
    Span,
    node::{Form, Node},
};

/// Masks by what lines look like: for text that is not YAML.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(&user_info(&keyed(line)));
    }
    out
}

/// Masks by what the file means, and by what lines look like, since a secret may be mentioned in a comment.
pub(super) fn document(source: &str, root: &Node) -> String {
    let mut spans = Vec::new();
    for (_, provider) in root
        .entry("providers")
        .map_or(&[][..], |(_, node)| node.entries())
    {
        spans.extend(provider.entry("api_key").map(|(_, node)| node.span));
        let headers = provider
            .entry("headers")
            .map_or(&[][..], |(_, node)| node.entries());
        spans.extend(
            headers
                .iter()
                .filter(|(_, value)| matches!(value.form, Form::Scalar(_)))
                .map(|(_, v)| v.span),
        );
    }
    spans.sort_by_key(|span: &Span| span.start);
    let mut out = String::with_capacity(source.len());
    let mut done = 0;
    for span in spans {
        if span.start < done || span.end > source.len() {
            continue;
        }
        out.push_str(&source[done..span.start]);
        out.push_str(&value(&source[span.range()]));
        done = span.end;
    }
    out.push_str(&source[done..]);
    text(&out)
}

/// Masks what follows a key that announces a secret, up to the end of the line.
fn keyed(line: &str) -> String {
    let start = SECRET_KEYS.iter().filter_map(|key| value_start(line, key)).min();
    start.map_or_else(
        || line.to_owned(),
        |start| format!("{}{}", &line[..start], value(&line[start..])),
    )
}

/// Where the value of `key` begins in `line`, if it has one.
fn value_start(line: &str, key: &str) -> Option<usize> {
    line.match_indices(key).find_map(|(at, _)| {
        let whole = line[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
        let rest = &line[at + key.len()..];
        let after = rest.trim_start_matches(['"', '\'']).trim_start();
        let after = after.strip_prefix(':')?.trim_start();
        (whole && !after.is_empty()).then(|| line.len() - after.len())
    })
}

/// Masks all of a value but references to variables, "nothing", comments, and line ends.
fn value(value: &str) -> String {
    let (value, comment) = value.find(" #").map_or((value, ""), |at| value.split_at(at));
    if matches!(value.trim(), "" | "~" | "null") {
        return format!("{value}{comment}");
    }
    let mut out = String::new();
    let mut rest = value;
    while let Some(open) = rest.find("${") {
        out.push_str(&stars(&rest[..open]));
        let close = rest[open..].find('}').map_or(rest.len(), |close| open + close);
        let operator = rest[open..close]
            .find(':')
            .map_or(close, |colon| (open + colon + 2).min(close));
        let operator = (operator..=close)
            .find(|at| rest.is_char_boundary(*at))
            .unwrap_or(close);
        out.push_str(&rest[open..operator]);
        out.push_str(&stars(&rest[operator..close]));
        let end = (close + 1).min(rest.len());
        out.push_str(&rest[close..end]);
        rest = &rest[end..];
    }
    out + &stars(rest) + comment
}

/// Masks `user:password` in URLs.
fn user_info(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out.push_str(head);
        let authority = tail.find(['/', ' ', '"', '\'', '\n']).unwrap_or(tail.len());
        let user = tail[..authority].rfind('@').unwrap_or(0);
        out.push_str(&stars(&tail[..user]));
        rest = &tail[user..];
    }
    out + rest
}

fn stars(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if matches!(b, b'\n' | b'\r') {
                char::from(b)
            } else {
                '*'
            }
        })
        .collect()
}

const SECRET_KEYS: [&str; 8] = [
    "api_key",
    "api-key",
    "authorization",
    "cookie",
    "password",
    "secret",
    "token",
    "x-api-key",
];

#[cfg(test)]
mod tests;
