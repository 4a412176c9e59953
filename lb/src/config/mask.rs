//! Takes secrets out of the text before any of it is shown.
//!
//! A diagnostic prints lines of the file, and a key may stand in one. Masking replaces it by asterisks of the same
//! length, so that every offset stays what it was. What stands between `${` and `}` is a name, and stays.

mod lines;

use super::{
    Span,
    node::{Form, Node, Scalar},
};

pub(super) use lines::text;

/// Masks by what the file means, and by what lines look like, since a secret may be mentioned in a comment.
pub(super) fn document(source: &str, root: &Node) -> String {
    let mut spans = Vec::new();
    secrets(source, root, &mut spans);
    spans.sort_by_key(|(span, _)| span.start);
    let mut out = String::with_capacity(source.len());
    let mut done = 0;
    for (span, secret) in spans {
        if span.start < done || span.end > source.len() {
            continue;
        }
        out.push_str(&source[done..span.start]);
        let written = &source[span.range()];
        out.push_str(&match secret {
            Secret::Whole => value(written),
            Secret::Url => url(written),
        });
        done = span.end;
    }
    out.push_str(&source[done..]);
    lines::each(&out)
}

/// What of a scalar is one.
#[derive(Clone, Copy)]
enum Secret {
    Whole,
    /// Its user and the values of its query.
    Url,
}

/// Finds the scalars that are secrets or hold one.
fn secrets(source: &str, node: &Node, into: &mut Vec<(Span, Secret)>) {
    match &node.form {
        Form::Scalar(scalar) => into.extend(in_url(source, node.span, scalar)),
        Form::List(items) => items.iter().for_each(|item| secrets(source, item, into)),
        Form::Map(entries) => {
            for (key, value) in entries {
                let is_secret = |known: &[&str]| known.contains(&key.value.as_str());
                if is_secret(&SECRET_MAPS) || is_secret(&SECRET_KEYS) {
                    all(value, into);
                } else {
                    secrets(source, value, into);
                }
            }
        }
    }
}

/// What is secret in a scalar that may be a URL.
fn in_url(source: &str, span: Span, scalar: &Scalar) -> Option<(Span, Secret)> {
    let may_hold = scalar.text.contains("://") && scalar.text.contains(['@', '?']);
    let may_hold = may_hold || scalar.text.starts_with("unix:") && scalar.text.contains('?');
    // Behind an escape it may be written in any way.
    let written = source.get(span.range())?;
    let secret = if written.starts_with('"') && written.contains('\\') {
        Secret::Whole
    } else {
        Secret::Url
    };
    may_hold.then_some((span, secret))
}

/// Takes every scalar in `node`, which holds nothing but secrets.
fn all(node: &Node, into: &mut Vec<(Span, Secret)>) {
    match &node.form {
        Form::Scalar(_) => into.push((node.span, Secret::Whole)),
        Form::List(items) => items.iter().for_each(|item| all(item, into)),
        Form::Map(entries) => entries.iter().for_each(|(_, value)| all(value, into)),
    }
}

/// Masks all of a value but references to variables and "nothing".
fn value(value: &str) -> String {
    if matches!(value.trim(), "" | "~" | "null") {
        return value.to_owned();
    }
    let mut out = String::new();
    let mut rest = value;
    while let Some(open) = rest.find("${") {
        out.push_str(&stars(&rest[..open]));
        let close = rest[open..].find('}').map_or(rest.len(), |close| open + close);
        let name = rest[open + 2..close].bytes();
        let name = name.take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let mut shown = open + 2 + name.count();
        if matches!(rest.as_bytes()[shown..close], [b':', b'-' | b'?', ..]) {
            shown += 2;
        }
        out.push_str(&rest[open..shown]);
        out.push_str(&stars(&rest[shown..close]));
        let end = (close + 1).min(rest.len());
        out.push_str(&rest[close..end]);
        rest = &rest[end..];
    }
    out + &stars(rest)
}

/// Masks the user of a URL and the values of its query. What is no URL has neither.
fn url(text: &str) -> String {
    let (text, end) = text.split_at(text.trim_end_matches(['"', '\'', ' ', '\n', '\r']).len());
    let scheme = text.find("://").map(|at| at + 3);
    let Some(scheme) = scheme.or_else(|| text.find("unix:/").map(|at| at + 5)) else {
        return format!("{text}{end}");
    };
    let query = text[scheme..].find('?').map_or(text.len(), |at| scheme + at);
    let path = text[scheme..query].find('/').map_or(query, |at| scheme + at);
    let user = text[scheme..path].rfind('@').or_else(|| {
        // A password may hold a slash, wrong as that is; then what is before it is no port.
        let (_, port) = text[scheme..path].rsplit_once(':')?;
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        text[scheme..query].rfind('@').filter(|_| !is_port)
    });
    let user = scheme + user.unwrap_or(0);
    let mut out = [&text[..scheme], &value(&text[scheme..user]), &text[user..query]].concat();
    for pair in text[query..].split_inclusive('&') {
        let key = pair
            .find('=')
            .map_or_else(|| usize::from(pair.starts_with('?')), |at| at + 1);
        let end = key.max(pair.len() - usize::from(pair.ends_with('&')));
        out.push_str(&pair[..key]);
        out.push_str(&value(&pair[key..end]));
        out.push_str(&pair[end..]);
    }
    out + end
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

/// Keys whose values are headers, of which any may be a secret.
const SECRET_MAPS: [&str; 2] = ["headers", "set"];

/// Keys that announce a secret, wherever they stand.
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
