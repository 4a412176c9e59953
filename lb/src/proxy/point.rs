//! What a request's key hashes to, where endpoints are chosen by one.

use http::HeaderMap;

use super::headers::Peer;
use crate::config::HashKey;
use crate::policy::balance::hash;

/// The point of a request with these fields from `peer`; `None` where it has no such key.
pub(super) fn point(key: &HashKey, headers: &HeaderMap, peer: &Peer) -> Option<u64> {
    match key {
        HashKey::Address => Some(address(headers, peer)),
        HashKey::Header(name) => headers.get(name).map(|value| hash(value.as_bytes())),
    }
}

/// A trusted proxy has written whom it saw at the end of its list.
fn address(headers: &HeaderMap, peer: &Peer) -> u64 {
    let lists = headers.get_all("x-forwarded-for");
    let seen = lists.iter().next_back().filter(|_| peer.trusted);
    let last = seen.and_then(|list| list.as_bytes().rsplit(|byte| *byte == b',').next());
    match last {
        Some(address) => hash(address.trim_ascii()),
        None => hash(peer.ip.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests;
