//! The time of day as responses say it.

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

thread_local! {
    /// Made once a second: the second since the epoch, and its text.
    static NOW: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
}

/// Calls `with` with the text for the second `unix` after the epoch (RFC 9110, 5.6.7).
pub(super) fn with_date<R>(unix: u64, with: impl FnOnce(&str) -> R) -> R {
    NOW.with_borrow_mut(|(second, text)| {
        if *second != unix {
            *second = unix;
            *text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix));
        }
        with(text)
    })
}
