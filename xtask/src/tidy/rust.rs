//! Just enough of Rust's syntax to see which paths a file names.
//!
//! Not a parser: comments and literals are blanked out, the rest is cut into tokens, and paths and `use` trees are
//! followed. That sees `use crate::{a::B, c}`, `crate::a::f()`, `super::super::a` and `tokio::select!` alike.

/// A word, a `::`, or a single other character.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// A path as it is written, without what a `use` tree around it would add: `["crate", "policy", "aimd"]`.
#[derive(Debug, PartialEq)]
pub(super) struct Path<'a> {
    pub(super) parts: Vec<&'a str>,
    pub(super) line: usize,
    /// The inline modules around it, outermost first.
    pub(super) inside: Vec<&'a str>,
}

/// All paths of two or more parts in `code` (see [`blank`]), and the single names that `use` brings in.
pub(super) fn paths(code: &str) -> Vec<Path<'_>> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut modules: Vec<(&str, usize)> = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = |ahead: usize| tokens.get(at + ahead).map_or("", |token| token.text);
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                modules.pop_if(|(_, opened)| *opened == depth);
            }
            "mod" if next(2) == "{" => {
                modules.push((next(1), depth));
                at += 1;
            }
            "use" => {
                let inside = modules.iter().map(|(name, _)| *name).collect::<Vec<_>>();
                at = follow(&tokens, at + 1, &[], &inside, &mut found);
                continue;
            }
            word if is_word(word) && next(1) == "::" => {
                let inside = modules.iter().map(|(name, _)| *name).collect::<Vec<_>>();
                at = follow(&tokens, at, &[], &inside, &mut found);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Follows the path or `use` tree that starts at token `at`, after `prefix`; returns the first token behind it.
fn follow<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    inside: &[&'a str],
    found: &mut Vec<Path<'a>>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token<'a>| token.text);
    let mut parts = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    // `::name` starts at the crates.
    at += usize::from(text(at) == "::");
    loop {
        match text(at) {
            "{" => {
                at += 1;
                while !matches!(text(at), "}" | "") {
                    let item = follow(tokens, at, &parts, inside, found);
                    // Renames and commas; always moves on, whatever stands here.
                    at = item.max(at + usize::from(item == at));
                    at += usize::from(text(at) == ",");
                }
                return at + 1;
            }
            word if is_word(word) => {
                parts.push(word);
                at += 1;
            }
            // All of `parts`, which is then a path of its own.
            "*" => {
                found.push(Path {
                    parts,
                    line,
                    inside: inside.to_vec(),
                });
                return at + 1;
            }
            // The generics of a turbofish.
            _ => break,
        }
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    if text(at) == "as" {
        at += 2;
    }
    if parts.len() > prefix.len() {
        found.push(Path {
            parts,
            line,
            inside: inside.to_vec(),
        });
    }
    at
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !is_word_char(c)).unwrap_or(rest.len());
            let length = match first {
                _ if word > 0 => word,
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            let (token, tail) = rest.split_at(length);
            tokens.push(Token {
                text: token,
                line: index + 1,
            });
            rest = tail.trim_start();
        }
    }
    tokens
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| is_word_char(c) && !c.is_ascii_digit())
}

/// `text` with comments and literals replaced by spaces, line for line.
pub(super) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = comment(rest).or_else(|| literal(rest, &out)).unwrap_or(0);
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (gone, tail) = rest.split_at(length.min(rest.len()));
        out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = tail;
    }
    out
}

/// The length of the comment that `text` starts with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        match here {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(text.len())
}

/// The length of the string or character that `text` starts with; `before` tells a prefix from the end of a word.
fn literal(text: &str, before: &str) -> Option<usize> {
    if let Some(rest) = text.strip_prefix('"') {
        return Some(1 + quoted(rest, '"'));
    }
    if let Some(rest) = text.strip_prefix('\'') {
        // 'a' and '\n' are characters, 'a alone is a lifetime.
        let mut chars = rest.chars();
        let (one, two) = (chars.next()?, chars.next());
        return (one == '\\' || two == Some('\'')).then(|| 1 + quoted(rest, '\''));
    }
    let raw = text.strip_prefix('r')?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    // A byte or C string's prefix is already out; any other word character makes this the end of a word.
    let word_before = before.trim_end_matches(['b', 'c']).ends_with(is_word_char);
    if word_before || !raw[hashes..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = &raw[hashes + 1..];
    Some(1 + hashes + 1 + body.find(&end).map_or(body.len(), |at| at + end.len()))
}

/// The length of what is left of a literal, with its closing `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
