//! The bearer token of the admin listener.

use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A bearer token, kept as its digest.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// The token that `text` is, without the line end a file gives it.
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text.trim_end_matches(['\r', '\n'])).into())
    }

    /// Whether a request with these headers carries it.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes) else {
            return false;
        };
        let Some((scheme, token)) = value.split_at_checked(7) else {
            return false;
        };
        let digest: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(self.0.ct_eq(&digest))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(set)")
    }
}
