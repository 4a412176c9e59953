//! What a request's body asks for, read as it comes: of JSON, of a form, or not at all.

use std::ops::Range;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::error::Refusal;
use super::named::Elsewhere;
use crate::wire::envelope::{Envelope, EnvelopeError, Members, Scanner};
use crate::wire::http1;
use crate::wire::multipart::{self, Form, FormError};

/// What a request asks for, and where it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The model.
    pub(super) model: String,
    /// Where it is named, for a provider that has another name for it.
    pub(super) place: Place,
    /// Whether it asks for a stream.
    pub(super) stream: bool,
    /// Whether the provider is to keep the answer; `None` where there is no saying.
    pub(super) stored: Option<bool>,
    /// Where its JSON says which conversation it belongs to, where that was wanted.
    pub(super) members: Option<Box<Members>>,
}

/// Where a request names its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a part of a form, as these bytes of the body.
    Form(Range<usize>),
    /// In the body's JSON, as these bytes of it, quotes included.
    Json(Range<usize>),
    /// Outside of the body.
    Elsewhere,
}

/// How a body is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms<'a> {
    /// The model of a request that names none.
    pub(super) default_model: Option<&'a str>,
    /// Whether it is noted which conversation it belongs to.
    pub(super) noting: bool,
    /// Whether its client may not use every model: what cannot be read as its provider reads it is refused then.
    pub(super) limited: bool,
}

/// A body in reading.
#[derive(Debug)]
pub(super) enum Reading {
    Form(Box<Form>),
    Json(Scanner),
    /// Nobody looks into it: it is compressed, or has a fault that does not matter.
    Opaque,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Form(FormError),
    Json(EnvelopeError),
}

impl Fault {
    /// Whether the body is simply nothing that lb reads, and not something that two readers could read in two ways.
    pub(super) fn is_foreign(self) -> bool {
        match self {
            Self::Form(_) => false,
            Self::Json(fault) => matches!(fault, EnvelopeError::NotJson { .. } | EnvelopeError::NotObject),
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::BadBody(match fault {
            Fault::Form(fault) => fault.to_string(),
            Fault::Json(fault) => fault.to_string(),
        })
    }
}

impl Reading {
    /// For a body with these fields.
    pub(super) fn new(headers: &HeaderMap, terms: Terms<'_>) -> Result<Self, Refusal> {
        if is_encoded(headers) {
            return Ok(Self::Opaque);
        }
        if terms.limited && !is_plain(headers) {
            return Err(Refusal::BadBody(format!(
                "the body's content-type is not `application/json` in UTF-8, nor `multipart/form-data`; {LIMITED}"
            )));
        }
        let boundary = headers
            .get(CONTENT_TYPE)
            .and_then(|value| multipart::boundary(value.as_bytes()));
        match boundary {
            Some(Ok(boundary)) => Ok(Self::Form(Box::new(Form::new(boundary)))),
            Some(Err(fault)) => Err(Fault::Form(fault).into()),
            None if terms.noting => Ok(Self::Json(Scanner::noting())),
            None => Ok(Self::Json(Scanner::new())),
        }
    }

    /// Reads the next bytes.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), Fault> {
        match self {
            Self::Opaque => Ok(()),
            Self::Json(scanner) => scanner.feed(chunk).map_err(Fault::Json),
            Self::Form(form) => form.feed(chunk).map_err(Fault::Form),
        }
    }

    /// What is known before the body's end: where its model is, nothing that follows will change that.
    pub(super) fn so_far(&self, elsewhere: impl FnOnce() -> Elsewhere) -> Option<Asked> {
        match self {
            Self::Opaque => elsewhere().map(opaque),
            Self::Json(scanner) => json(scanner.so_far().clone(), members(scanner), || None),
            Self::Form(form) => of_form(form.fields().clone(), || None),
        }
    }

    /// What the whole body asks for. The model is the body's, else the one that is named `elsewhere`, which is also the
    /// one of a body that is no JSON, but for a `limited` client.
    pub(super) fn finish(
        self,
        limited: bool,
        elsewhere: impl FnOnce() -> Elsewhere,
    ) -> Result<Asked, Refusal> {
        let found = match self {
            Self::Opaque => elsewhere().map(opaque),
            Self::Json(scanner) => {
                let members = members(&scanner);
                if limited && scanner.hides_model() {
                    return Err(Refusal::BadBody(format!(
                        "`model` is written in another case, or null; {LIMITED}"
                    )));
                }
                match scanner.finish().map_err(Fault::Json) {
                    Ok(envelope) => json(envelope, members, elsewhere),
                    Err(fault) if fault.is_foreign() && !limited => match elsewhere() {
                        Some(elsewhere) => Some(opaque(elsewhere)),
                        None => return Err(fault.into()),
                    },
                    Err(fault) => return Err(fault.into()),
                }
            }
            Self::Form(form) => of_form(form.finish().map_err(Fault::Form)?, elsewhere),
        };
        found.ok_or_else(no_model)
    }
}

/// Whether a body is in a coding that cannot be looked into.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    let is_coding = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    http1::has(headers, &CONTENT_ENCODING) && headers.get_all(CONTENT_ENCODING).iter().any(is_coding)
}

/// What ends the refusal of a body that others may send.
const LIMITED: &str = "a key with a list of models needs a body in which its model can be read";

/// Whether everybody reads a body with these fields as lb does: in another charset its keys may be others, and a form's
/// pairs may stand in any JSON.
fn is_plain(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (first, second) = (types.next(), types.next());
    let Some(text) = first.map(|value| value.as_bytes().to_ascii_lowercase()) else {
        return true;
    };
    let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let is_pairs = parts.next() == Some(b"application/x-www-form-urlencoded");
    let mut charsets = parts.filter_map(|part| part.strip_prefix(b"charset"));
    let is_known = |named: &[u8]| matches!(named, b"=utf-8" | b"=\"utf-8\"" | b"=utf8" | b"=us-ascii");
    second.is_none() && !is_pairs && charsets.all(is_known)
}

/// A request of whose body nothing is known.
pub(super) fn opaque(model: String) -> Asked {
    Asked {
        model,
        place: Place::Elsewhere,
        stream: false,
        stored: None,
        members: None,
    }
}

fn members(scanner: &Scanner) -> Option<Box<Members>> {
    scanner.members().cloned().map(Box::new)
}

fn json(
    envelope: Envelope,
    members: Option<Box<Members>>,
    elsewhere: impl FnOnce() -> Elsewhere,
) -> Option<Asked> {
    let Envelope {
        model,
        model_span,
        stream,
        stored,
    } = envelope;
    let own = model.map(|model| (model, Place::Json(model_span)));
    let (model, place) = own.or_else(|| Some((elsewhere()?, Place::Elsewhere)))?;
    Some(Asked {
        model,
        place,
        stream,
        stored: Some(stored),
        members,
    })
}

fn of_form(fields: multipart::Fields, elsewhere: impl FnOnce() -> Elsewhere) -> Option<Asked> {
    let own = fields.model.map(|model| (model, Place::Form(fields.model_span)));
    let (model, place) = own.or_else(|| Some((elsewhere()?, Place::Elsewhere)))?;
    Some(Asked {
        model,
        place,
        stream: fields.stream,
        stored: None,
        members: None,
    })
}

/// The refusal of a request that names none.
pub(super) fn no_model() -> Refusal {
    let what = "no model is named: put `model` into the JSON body or into a part of the form, `?model=` into the \
                query, or send `x-lb-model`";
    Refusal::BadBody(what.to_owned())
}

#[cfg(test)]
mod tests;
