//! Values that must never be seen.

use std::{fmt, path::PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

/// A credential: wiped when dropped, compared in constant time, and never printed, not even by `Debug`.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The credential itself, to be sent and not to be kept.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(set)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose().as_bytes().ct_eq(other.expose().as_bytes()).into()
    }
}

impl Eq for Secret {}

/// Where a provider's key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKey {
    /// A file that holds the key and nothing else; it is read at the start and whenever it changes.
    File(PathBuf),
    /// The key itself, written in the file or taken from the environment.
    Inline(Secret),
}

#[cfg(test)]
mod tests;
