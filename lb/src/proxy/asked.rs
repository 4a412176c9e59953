//! What a request's body asks for, read as it comes: of JSON, of a form, or not at all.

use std::ops::Range;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::error::Refusal;
use crate::wire::envelope::{Envelope, EnvelopeError, Scanner};
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
}

/// Where a request names its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a part of a form, as these bytes of the body.
    Form(Range<usize>),
    /// In the body's JSON, as these bytes of it, quotes included.
    Json(Range<usize>),
    /// Outside of what is passed on: in `x-lb-model`, or in its route.
    Nowhere,
    /// In the query.
    Query,
}

/// A model that is named outside of the body.
pub(super) type Elsewhere = Option<(String, Place)>;

/// A body in reading.
#[derive(Debug)]
pub(super) enum Reading {
    Form(Box<Form>),
    Json(Box<Scanner>),
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
    fn is_foreign(self) -> bool {
        match self {
            Self::Form(_) => false,
            Self::Json(fault) => matches!(fault, EnvelopeError::NotJson { .. } | EnvelopeError::NotObject),
        }
    }

    fn refusal(self) -> Refusal {
        Refusal::BadBody(match self {
            Self::Form(fault) => fault.to_string(),
            Self::Json(fault) => fault.to_string(),
        })
    }
}

impl Reading {
    /// For a body with these fields. One that cannot be read has to be named elsewhere.
    pub(super) fn new(headers: &HeaderMap, elsewhere: &Elsewhere) -> Result<Self, Refusal> {
        let encoded = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
        if encoded {
            return if elsewhere.is_some() {
                Ok(Self::Opaque)
            } else {
                Err(Refusal::Encoding)
            };
        }
        let boundary = headers
            .get(CONTENT_TYPE)
            .and_then(|value| multipart::boundary(value.as_bytes()));
        Ok(match boundary {
            Some(Ok(boundary)) => Self::Form(Box::new(Form::new(boundary))),
            Some(Err(fault)) => return Err(Fault::Form(fault).refusal()),
            None => Self::Json(Box::default()),
        })
    }

    /// Reads the next bytes. What is no JSON is no fault where the model is named elsewhere.
    pub(super) fn feed(&mut self, chunk: &[u8], elsewhere: &Elsewhere) -> Result<(), Refusal> {
        let fault = match self {
            Self::Opaque => return Ok(()),
            Self::Json(scanner) => scanner.feed(chunk).err().map(Fault::Json),
            Self::Form(form) => form.feed(chunk).err().map(Fault::Form),
        };
        match fault {
            None => Ok(()),
            Some(fault) if fault.is_foreign() && elsewhere.is_some() => {
                *self = Self::Opaque;
                Ok(())
            }
            Some(fault) => Err(fault.refusal()),
        }
    }

    /// What is known before the body's end: where its model is, nothing that follows will change that.
    pub(super) fn so_far(&self, elsewhere: &Elsewhere) -> Option<Asked> {
        match self {
            Self::Opaque => elsewhere.clone().map(opaque),
            Self::Json(scanner) => json(scanner.so_far().clone(), None),
            Self::Form(form) => of_form(form.fields().clone(), None),
        }
    }

    /// What the whole body asks for.
    pub(super) fn finish(self, elsewhere: Elsewhere) -> Result<Asked, Refusal> {
        let found = match self {
            Self::Opaque => elsewhere.map(opaque),
            Self::Json(scanner) => match scanner.finish() {
                Ok(envelope) => json(envelope, elsewhere),
                Err(fault) => match elsewhere {
                    Some(elsewhere) if Fault::Json(fault).is_foreign() => Some(opaque(elsewhere)),
                    _ => return Err(Fault::Json(fault).refusal()),
                },
            },
            Self::Form(form) => {
                let fields = form.finish().map_err(|fault| Fault::Form(fault).refusal())?;
                of_form(fields, elsewhere)
            }
        };
        found.ok_or_else(no_model)
    }
}

/// A request of whose body nothing is known.
pub(super) fn opaque((model, place): (String, Place)) -> Asked {
    Asked {
        model,
        place,
        stream: false,
        stored: None,
    }
}

fn json(envelope: Envelope, elsewhere: Elsewhere) -> Option<Asked> {
    let Envelope {
        model,
        model_span,
        stream,
        stored,
    } = envelope;
    let own = model.map(|model| (model, Place::Json(model_span)));
    let (model, place) = own.or(elsewhere)?;
    Some(Asked {
        model,
        place,
        stream,
        stored: Some(stored),
    })
}

fn of_form(fields: multipart::Fields, elsewhere: Elsewhere) -> Option<Asked> {
    let own = fields.model.map(|model| (model, Place::Form(fields.model_span)));
    let (model, place) = own.or(elsewhere)?;
    Some(Asked {
        model,
        place,
        stream: fields.stream,
        stored: None,
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
