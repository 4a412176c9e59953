//! Which clients may send requests.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

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

    /// Whether a request with these headers may go on: the name of its key, where one is asked for. Every digest is
    /// compared, each in constant time, so that how long a refusal takes says nothing about the keys.
    #[expect(
        clippy::option_option,
        reason = "whether it is admitted, and by which key if by any"
    )]
    pub(super) fn admits(&self, headers: &HeaderMap) -> Option<Option<&str>> {
        if !self.required {
            return Some(None);
        }
        let digest: [u8; 32] = Sha256::digest(presented(headers)?).into();
        let mut known = u64::MAX;
        for (number, (_, candidate)) in (0..).zip(&self.keys) {
            known.conditional_assign(&number, candidate.ct_eq(&digest));
        }
        let (name, _) = self.keys.get(usize::try_from(known).ok()?)?;
        Some(Some(name))
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
