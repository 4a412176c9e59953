//! `GET /v1/models`: the names a client may send, from the table.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;

use super::auth::Client;
use super::body::Body;
use super::error::{Refusal, json};
use crate::upstream::Table;

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
}

impl<'a> Entry<'a> {
    fn new(id: &'a str, started: u64) -> Self {
        Self {
            id,
            object: "model",
            created: started,
            owned_by: "lb",
        }
    }
}

/// All that the client may use. `started` is the Unix second in which the table's process began: clients want a number.
pub(super) fn list(table: &Table, client: Client<'_>, started: u64) -> Response<Body> {
    let data = table
        .listed()
        .iter()
        .filter(|listed| client.may_use(&listed.name))
        .map(|listed| Entry::new(&listed.name, started))
        .collect();
    answer(&List { object: "list", data })
}

/// One model by its name, percent-decoded by the caller.
pub(super) fn one(
    table: &Table,
    client: Client<'_>,
    name: &str,
    started: u64,
) -> Result<Response<Body>, Refusal> {
    let known = client.may_use(name) && table.listed().iter().any(|listed| &*listed.name == name);
    if known {
        Ok(answer(&Entry::new(name, started)))
    } else {
        Err(not_found(table, client, name))
    }
}

/// The refusal of a name that the client may not use, or nobody configured: which of the two, it is not told. With the
/// nearest that it may.
pub(super) fn not_found(table: &Table, client: Client<'_>, name: &str) -> Refusal {
    // To compare takes the product of both lengths, and no name that is longer can be meant.
    let nearest = if name.len() > NAME_BYTES {
        None
    } else {
        let usable = table
            .listed()
            .iter()
            .filter(|listed| client.may_use(&listed.name));
        usable
            .map(|listed| (strsim::jaro_winkler(&listed.name, name), &listed.name))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, near)| near.to_string())
    };
    Refusal::ModelNotFound {
        model: name.chars().take(NAME_BYTES).collect(),
        nearest,
    }
}

/// The longest name that a configuration can give to a model. Bytes.
const NAME_BYTES: usize = 256;

fn answer(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(bytes) => json(StatusCode::OK, Bytes::from(bytes)),
        // Strings and numbers always serialise; should that ever change, the client learns of it.
        Err(_) => Refusal::NotFound.response(0),
    }
}
