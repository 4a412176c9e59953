//! The same by what lines look like, for text that is not YAML and for comments.

use super::{SECRET_KEYS, SECRET_MAPS, stars, url, value};

/// Masks text that is not YAML: what begins with a key of secrets is masked as far as it may go on, since where a quote
/// or a block ends nobody can say.
pub(in crate::config) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The column of a key whose value may go on, and whether it has begun.
    let mut open: Option<(usize, bool)> = None;
    for line in text.split_inclusive('\n') {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let goes_on = |(column, begun): (usize, bool)| content.is_empty() || indent > column || !begun;
        if let Some((column, begun)) = open.filter(|open| goes_on(*open)) {
            out.push_str(&stars(line));
            open = Some((column, begun || !content.is_empty()));
            continue;
        }
        let keys = SECRET_KEYS.iter().chain(&SECRET_MAPS);
        let start = keys.filter_map(|key| value_start(line, key)).min();
        open = start.map(|start| (indent, !line[start..].trim().is_empty()));
        let start = start.unwrap_or(line.len());
        out.push_str(&urls(&line[..start]));
        out.push_str(&value(&line[start..]));
    }
    out
}

/// Masks what follows a key that announces a secret, up to the end of its line or to a comment.
pub(super) fn each(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let start = SECRET_KEYS.iter().filter_map(|key| value_start(line, key)).min();
        let start = start.unwrap_or(line.len());
        // What is masked by its meaning has no quotes any more; in others there is perhaps no comment.
        let comment = line[start..]
            .find(" #")
            .filter(|_| !line[start..].contains(['"', '\'']));
        let end = comment.map_or(line.len(), |at| start + at);
        out.push_str(&urls(&line[..start]));
        out.push_str(&value(&line[start..end]));
        out.push_str(&urls(&line[end..]));
    }
    out
}

/// Where the value of `key` begins in `line`, if it has one; the end of the line where it may follow.
fn value_start(line: &str, key: &str) -> Option<usize> {
    line.match_indices(key).find_map(|(at, _)| {
        let whole = line[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
        let rest = &line[at + key.len()..];
        let after = rest.trim_start_matches(['"', '\'']).trim_start();
        let after = after.strip_prefix(':')?.trim_start();
        whole.then(|| line.len() - after.len())
    })
}

/// Masks what is secret in the URLs of a line.
fn urls(line: &str) -> String {
    line.split_inclusive([' ', '"', '\'', '\n']).map(url).collect()
}
