//! YAML text to a [`Node`] tree. The parser crate is known here and nowhere else.
//!
//! The parser is asked for structure and places only. It is not asked for types, because a value's type depends on
//! who reads it (a key such as `007` is text), and not for `${VAR}`, because the environment's values must not get
//! anywhere near a parser's messages ([`super::interpolate`]).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{
    Error, Location,
    options::{DuplicateKeyPolicy, NonFiniteFloatPolicy},
};

use super::{
    Span,
    diagnostic::Diagnostic,
    node::{Form, Node, Scalar},
    span::Spanned,
};

/// Reads `text`, or says what is wrong with its first fault.
pub(super) fn read(text: &str) -> Result<Node, Box<Diagnostic>> {
    let options = serde_saphyr::options! {
        // Both places of a duplicate are wanted for the message, so that they are told apart here.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        null_as_string: true,
        with_snippet: false,
        // Far more than a configuration needs, and soon reached by aliases that multiply.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    };
    let parsed: serde_saphyr::Spanned<Parsed> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| syntax_error(text, &error))?;
    node(text, parsed)
}

/// A value as the parser hands it over.
enum Parsed {
    Text(String),
    /// A plain scalar that could be more than text; its spelling is read from the source.
    Word,
    List(Vec<serde_saphyr::Spanned<Self>>),
    Map(Vec<(serde_saphyr::Spanned<String>, serde_saphyr::Spanned<Self>)>),
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParsedVisitor)
    }
}

struct ParsedVisitor;

impl<'de> Visitor<'de> for ParsedVisitor {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Parsed, E> {
        Ok(Parsed::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Parsed, E> {
        Ok(Parsed::Word)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parsed, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Parsed::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Parsed::Map(entries))
    }
}

fn node(text: &str, parsed: serde_saphyr::Spanned<Parsed>) -> Result<Node, Box<Diagnostic>> {
    let span = span(text, parsed.defined);
    let written = text.get(span.range()).unwrap_or_default();
    let scalar = |text: String, plain| Scalar {
        text,
        plain,
        from_environment: false,
    };
    let form = match parsed.value {
        Parsed::Word => Form::Scalar(scalar(written.to_owned(), true)),
        // Quotes, escapes, folding: all of them make the spelling differ from the text.
        Parsed::Text(value) => {
            let plain = value == written;
            Form::Scalar(scalar(value, plain))
        }
        Parsed::List(items) => Form::List(
            items
                .into_iter()
                .map(|item| node(text, item))
                .collect::<Result<_, _>>()?,
        ),
        Parsed::Map(entries) => Form::Map(map(text, entries)?),
    };
    Ok(Node { span, form })
}

type Pair = (serde_saphyr::Spanned<String>, serde_saphyr::Spanned<Parsed>);

fn map(text: &str, entries: Vec<Pair>) -> Result<Vec<(Spanned<String>, Node)>, Box<Diagnostic>> {
    let mut seen: Vec<(Spanned<String>, Node)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = Spanned {
            span: span(text, key.defined),
            value: key.value,
        };
        if let Some((first, _)) = seen.iter().find(|(known, _)| known.value == key.value) {
            let message = format!("key `{}` is written twice", key.value);
            let problem = Diagnostic::error("E001", key.span, message)
                .label("the second one")
                .also(first.span, "the first one")
                .help("remove one of them; which of the two was meant is not guessed");
            return Err(problem.into());
        }
        seen.push((key, node(text, value)?));
    }
    Ok(seen)
}

fn span(text: &str, location: Location) -> Span {
    let at = |offset: Option<u64>| offset.and_then(|o| usize::try_from(o).ok()).unwrap_or(0);
    let start = at(location.span().byte_offset()).min(text.len());
    let end = (start + at(location.span().byte_len())).min(text.len());
    Span { start, end }
}

/// The character at a location's line and column, which is all that a syntax error has.
fn character(text: &str, location: Location) -> Span {
    let index = |n: u64| usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
    let line_start = text
        .split_inclusive('\n')
        .take(index(location.line()))
        .map(str::len)
        .sum::<usize>();
    let column = text[line_start..].char_indices().nth(index(location.column()));
    let (start, length) = column.map_or((text.len(), 0), |(at, c)| (line_start + at, c.len_utf8()));
    Span {
        start,
        end: start + length,
    }
}

fn syntax_error(text: &str, error: &Error) -> Box<Diagnostic> {
    let span = character(text, error.location().unwrap_or(Location::UNKNOWN));
    if matches!(error, Error::MultipleDocuments { .. }) {
        return Diagnostic::error("E001", span, "the file is more than one YAML document")
            .help("remove the line `---` and what follows it")
            .into();
    }
    let message = error.to_string();
    // The place is shown by the snippet.
    let message = message
        .rsplit_once(" at line ")
        .map_or(message.as_str(), |(what, _)| what);
    let diagnostic = Diagnostic::error("E001", span, format!("this is not YAML: {message}"));
    let line = text[..span.start].rfind('\n').map_or(0, |n| n + 1);
    let line = text[line..].lines().next().unwrap_or_default();
    match () {
        () if line.contains("${") => diagnostic
            .help("inside { } and [ ] braces belong to YAML: put a value with ${…} on a line of its own"),
        () if message.contains("tabs") => diagnostic.help("indent with spaces"),
        () => diagnostic,
    }
    .into()
}

#[cfg(test)]
mod tests;
