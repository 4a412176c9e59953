//! Which clients may send requests.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The client keys that are known, as digests: the keys themselves are nowhere in this process.
#[derive(Clone, Debug, Default)]
pub struct ClientKeys {
    required: bool,
    keys: Vec<(Box<str>, [u8; 32])>,
}

impl ClientKeys {
    /// Keys by name and SHA-256. `required` refuses requests that carry none of them.
    pub fn new(required: bool, keys: Vec<(Box<str>, [u8; 32])>) -> Self {
        Self { required, keys }
    }

    /// Whether a request with these headers may go on. Every digest is compared, each in constant time, so that how
    /// long a refusal takes says nothing about the keys.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        if !self.required {
            return true;
        }
        let Some(key) = presented(headers) else {
            return false;
        };
        let digest: [u8; 32] = Sha256::digest(key).into();
        let mut known = subtle::Choice::from(0);
        for (_, candidate) in &self.keys {
            known |= candidate.ct_eq(&digest);
        }
        known.into()
    }
}

/// The key a client presents: a bearer token, or `x-api-key`.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| token.trim_ascii())
    });
    bearer.or_else(|| headers.get("x-api-key").map(http::HeaderValue::as_bytes))
}
