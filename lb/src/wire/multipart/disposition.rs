//! The name of a part, by its `content-disposition`.

/// The `name` of a disposition; an error where others may read another one: where it is said twice, with a charset
/// (RFC 2231), or lies behind a quote of which some hold that a backslash escapes it.
pub(super) fn name(disposition: &[u8]) -> Result<Option<&[u8]>, ()> {
    let plain = read(disposition, false)?;
    // Most have none.
    if memchr::memchr(b'\\', disposition).is_none() {
        return Ok(plain);
    }
    let escaped = read(disposition, true)?;
    let clear = plain == escaped && plain.is_none_or(|name| !name.contains(&b'\\'));
    if clear { Ok(plain) } else { Err(()) }
}

/// The same as a reader finds it to whom a backslash escapes what follows, or is a character like any other.
fn read(disposition: &[u8], escapes: bool) -> Result<Option<&[u8]>, ()> {
    let mut found = None;
    let mut rest = disposition;
    while let Some(split) = memchr::memchr(b';', rest) {
        rest = rest[split + 1..].trim_ascii_start();
        let end = rest.iter().position(|byte| matches!(byte, b'=' | b';'));
        let Some(end) = end.filter(|end| rest[*end] == b'=') else {
            continue;
        };
        let (key, value) = (rest[..end].trim_ascii(), rest[end + 1..].trim_ascii_start());
        let (value, behind) = if let Some(quoted) = value.strip_prefix(b"\"") {
            let close = close(quoted, escapes).ok_or(())?;
            (&quoted[..close], &quoted[close + 1..])
        } else {
            let end = memchr::memchr(b';', value).unwrap_or(value.len());
            (value[..end].trim_ascii(), &value[end..])
        };
        // `name*` and `name*0` are names as well.
        let is_name = key.len() >= 4 && key[..4].eq_ignore_ascii_case(b"name");
        match key.get(4) {
            None if is_name && found.is_none() => found = Some(value),
            None | Some(b'*') if is_name => return Err(()),
            _ => {}
        }
        rest = behind;
    }
    Ok(found)
}

/// Where a quoted value ends.
fn close(quoted: &[u8], escapes: bool) -> Option<usize> {
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some(at),
            b'\\' if escapes => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests;
