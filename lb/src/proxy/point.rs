//! What a request's key hashes to, where endpoints are chosen by one.

use std::ops::Range;

use http::HeaderMap;

use super::asked::Asked;
use super::headers::Peer;
use super::receive::Payload;
use crate::config::{Affinity, HashKey};
use crate::policy::balance::{hash, hash_long};
use crate::wire::envelope::Members;

/// The point of a request with these fields from `peer`, of this conversation; `None` where it has no such key.
pub(super) fn point(
    key: &HashKey,
    headers: &HeaderMap,
    peer: &Peer,
    conversation: Option<u64>,
) -> Option<u64> {
    match key {
        HashKey::Conversation => conversation,
        HashKey::Address => Some(address(headers, peer)),
        HashKey::Header(name) => headers.get(name).map(|value| hash(value.as_bytes())),
    }
}

/// The point of the conversation that a request belongs to, by `affinity`. Neither a field's value nor a prompt goes any
/// further than into this number.
pub(super) fn conversation(
    affinity: &Affinity,
    headers: &HeaderMap,
    asked: &Asked,
    payload: &Payload,
) -> Option<u64> {
    let text = |member: fn(&Members) -> &Range<usize>| {
        let span = asked.members.as_deref().map(member);
        span.filter(|span| !span.is_empty())
            .map(|span| payload.span(span.clone()))
    };
    match affinity {
        Affinity::FirstMessages => text(|members| &members.opening).map(|opening| hash_long(&opening)),
        Affinity::Header(name) => headers.get(name).map(|value| hash(value.as_bytes())),
        Affinity::PromptCacheKey => text(|members| &members.cache_key).map(|key| hash(&key)),
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
