//! Reads how long a provider asks to be left alone.
//!
//! Providers say it in several headers and clocks, often in more than one at once. The most exact wins:
//! `retry-after-ms`, then `Retry-After` (RFC 9110, 10.2.3: seconds or a date; decimals are seen in the field), then the
//! `x-ratelimit-reset-*` pair, then `x-ratelimit-reset`. A form that cannot be read is as if absent, so that a broken
//! header never hides a good one. [AFTER-1]

#[cfg(test)]
mod tests;

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;

/// How long to wait, counted from `unix_now` (the time since the Unix epoch, for the forms that are dates).
///
/// A moment that has passed is zero. Nothing readable is `None`. The value is not capped: what is sensible depends on
/// the provider's configuration. [AFTER-2]
pub fn parse(headers: &HeaderMap, unix_now: Duration) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    text("retry-after-ms")
        .and_then(|value| scaled(value, 1e-3))
        .or_else(|| {
            let value = text("retry-after")?;
            scaled(value, 1.0).or_else(|| date(value, unix_now))
        })
        .or_else(|| {
            // Which of the two limits was hit is not said; going by the longer one never comes back too early.
            let requests = text("x-ratelimit-reset-requests").and_then(compound);
            let tokens = text("x-ratelimit-reset-tokens").and_then(compound);
            requests.max(tokens)
        })
        .or_else(|| text("x-ratelimit-reset").and_then(|value| reset(value, unix_now)))
}

/// A plain decimal number of units of `unit` seconds: no sign, no exponent, no words. `None` as well for one that no
/// `Duration` can hold.
fn scaled(value: &str, unit: f64) -> Option<Duration> {
    let plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = value.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// An HTTP date: IMF-fixdate, or one of the two obsolete forms that RFC 9110 obliges a recipient to read.
fn date(value: &str, unix_now: Duration) -> Option<Duration> {
    let at = httpdate::parse_http_date(value)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    Some(at.saturating_sub(unix_now))
}

/// A duration of numbers with units, `1m30.5s` or `500ms`, as Go prints them; a bare number is seconds.
fn compound(value: &str) -> Option<Duration> {
    if let Some(plain) = scaled(value, 1.0) {
        return Some(plain);
    }
    let mut total = None;
    let mut rest = value;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let end = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (name, tail) = tail.split_at(end);
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        total = Some(
            total
                .unwrap_or(Duration::ZERO)
                .checked_add(scaled(number, *unit)?)?,
        );
        rest = tail;
    }
    total
}

/// One number that is a moment of the Unix clock where it is large enough to be one, else seconds from now.
fn reset(value: &str, unix_now: Duration) -> Option<Duration> {
    let seconds = scaled(value, 1.0)?;
    if seconds < EPOCH_SECONDS_FROM {
        return Some(seconds);
    }
    let at = if seconds < EPOCH_MILLISECONDS_FROM {
        seconds
    } else {
        seconds / 1000
    };
    Some(at.saturating_sub(unix_now))
}

/// In seconds. Go's `us` and `ns` belong to the form, though nobody should ask for so little.
const UNITS: [(&str, f64); 7] = [
    ("d", 86400.0),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("ns", 1e-9),
];

/// September 2001 as a Unix time; as a wait it would be thirty years.
const EPOCH_SECONDS_FROM: Duration = Duration::from_secs(1_000_000_000);

/// The same moment in milliseconds; as a Unix time in seconds it would be in the year 33658.
const EPOCH_MILLISECONDS_FROM: Duration = Duration::from_secs(1_000_000_000_000);
