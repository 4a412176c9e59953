//! Which clients may send requests.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::Pattern;

/// The client keys that are known, as digests: the keys themselves are nowhere in this process.
#[derive(Clone, Debug, Default)]
pub struct ClientKeys {
    required: bool,
    keys: Vec<ClientKey>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct ClientKey {
    /// As the configuration calls it.
    pub name: Box<str>,
    /// Its SHA-256.
    pub digest: [u8; 32],
    /// The models and presets it may use, families (`prefix/*`) among them; `None` is all.
    pub models: Option<Vec<String>>,
}

/// Who sent a request, as far as it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a>(Option<&'a ClientKey>);

impl<'a> Client<'a> {
    /// Whether the client may use the model or preset of this name.
    pub(super) fn may_use(self, model: &str) -> bool {
        let limit = self.0.and_then(|key| key.models.as_ref());
        limit.is_none_or(|models| models.iter().any(|known| Pattern::of(known).takes(model)))
    }

    /// The name of its key, where it showed one.
    pub(super) fn name(self) -> Option<&'a str> {
        self.0.map(|key| &*key.name)
    }

    /// Whether there are models that the client may not use.
    pub(super) fn is_limited(self) -> bool {
        self.0.is_some_and(|key| key.models.is_some())
    }
}

impl ClientKeys {
    /// The keys that are known. `required` refuses requests that carry none of them.
    pub fn new(required: bool, keys: Vec<ClientKey>) -> Self {
        Self { required, keys }
    }

    /// Who sent a request with these headers; `None` where it may not go on. Every digest is compared, each in
    /// constant time, so that how long a refusal takes says nothing about the keys.
    ///
    /// Where no key is required, one that is known counts all the same: its limits hold.
    pub(super) fn identify(&self, headers: &HeaderMap) -> Option<Client<'_>> {
        let anybody = (!self.required).then_some(Client(None));
        if self.keys.is_empty() {
            return anybody;
        }
        let Some(key) = presented(headers) else {
            return anybody;
        };
        let digest: [u8; 32] = Sha256::digest(key).into();
        let mut found = None;
        for key in &self.keys {
            if bool::from(key.digest.ct_eq(&digest)) {
                found = Some(Client(Some(key)));
            }
        }
        found.or(anybody)
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
