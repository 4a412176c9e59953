//! The model that a request names outside of its body.

use std::borrow::Cow;

use http::{Request, Uri};

use super::error::Refusal;

/// A model that is named outside of the body.
pub(super) type Elsewhere = Option<String>;

/// Refuses a query that names two models: of which parsers take the first and some the last.
pub(super) fn check(uri: &Uri) -> Result<(), Refusal> {
    let Some(query) = uri.query() else { return Ok(()) };
    if query.split('&').filter(|pair| names_model(key(pair))).count() > 1 {
        return Err(Refusal::BadRequest("the query has more than one `model`"));
    }
    Ok(())
}

/// The model where the body does not name it: by `x-lb-model`, else in the query, else by its route.
pub(super) fn elsewhere<B>(request: &Request<B>, default_model: Option<&str>) -> Elsewhere {
    let header = request.headers().get("x-lb-model");
    if let Some(model) = header.and_then(|value| value.to_str().ok()) {
        return Some(model.to_owned());
    }
    let query = request.uri().query().and_then(in_query);
    query.or_else(|| default_model.map(str::to_owned))
}

/// The model that a query names.
pub(super) fn in_query(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, model) = pairs.find(|(name, _)| names_model(name))?;
    Some(percent_decoded(model))
}

/// The query with another value for its `model`.
pub(super) fn with_model(query: &str, model: &str) -> String {
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if names_model(name) => Cow::Owned(format!("model={}", percent_encoded(model))),
        _ => Cow::Borrowed(pair),
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn key(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key)
}

/// Whether a key is `model`, also where it is written with escapes.
fn names_model(key: &str) -> bool {
    key == "model" || key.contains('%') && percent_decoded(key) == "model"
}

/// `%41` as `A`; what is no escape stays as it is.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = (*first == b'%').then(|| tail.first_chunk::<2>()).flatten();
        let byte = escape
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                u8::from_str_radix(digits, 16).ok()
            });
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes everything");
        }
    }
    out
}

#[cfg(test)]
mod tests;
