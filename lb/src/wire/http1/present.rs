//! Which of the fields a message has that most have none of.

use http::header::{self, HeaderMap, HeaderName};

#[cfg(test)]
mod tests;

/// Which of the fields a request has of which a proxy asks time and again: found in one walk over the names, since each
/// walk of its own costs as much.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Present(u8);

impl Present {
    /// `connection`.
    pub const CONNECTION: Self = Self(1);
    /// `content-length`.
    pub const CONTENT_LENGTH: Self = Self(1 << 1);
    /// `expect`.
    pub const EXPECT: Self = Self(1 << 2);
    /// `te`.
    pub const TE: Self = Self(1 << 3);
    /// `transfer-encoding`.
    pub const TRANSFER_ENCODING: Self = Self(1 << 4);
    /// `upgrade`.
    pub const UPGRADE: Self = Self(1 << 5);
    /// `via`.
    pub const VIA: Self = Self(1 << 6);

    /// Those that `headers` have.
    pub fn among(headers: &HeaderMap) -> Self {
        let all = headers.keys().fold(0, |all, name| all | Self::of(name).0);
        Self(all)
    }

    /// Whether any of `these` is there.
    pub fn any(self, these: Self) -> bool {
        self.0 & these.0 != 0
    }

    fn of(name: &HeaderName) -> Self {
        // The length decides nearly always.
        let (known, bit) = match name.as_str().len() {
            2 => (header::TE, Self::TE),
            3 => (header::VIA, Self::VIA),
            6 => (header::EXPECT, Self::EXPECT),
            7 => (header::UPGRADE, Self::UPGRADE),
            10 => (header::CONNECTION, Self::CONNECTION),
            14 => (header::CONTENT_LENGTH, Self::CONTENT_LENGTH),
            17 => (header::TRANSFER_ENCODING, Self::TRANSFER_ENCODING),
            _ => return Self(0),
        };
        if *name == known { bit } else { Self(0) }
    }
}
