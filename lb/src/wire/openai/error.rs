//! Errors in `OpenAI`'s form: reading their status out of an event, and writing our own.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::members::{members, text};

/// An error that lb answers with itself, as `{"error":{"message","type","param","code"}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiError<'a> {
    /// A sentence for a person.
    pub message: &'a str,
    /// The class of the error: `invalid_request_error`, `rate_limit_error`, `server_error`.
    pub kind: &'a str,
    /// What a program goes by.
    pub code: &'a str,
    /// The member of the request that is to blame.
    pub param: Option<&'a str>,
}

impl ApiError<'_> {
    /// The response body.
    pub fn to_bytes(&self) -> Bytes {
        #[derive(Serialize)]
        struct Body<'a> {
            error: Members<'a>,
        }
        #[derive(Serialize)]
        struct Members<'a> {
            message: &'a str,
            r#type: &'a str,
            param: Option<&'a str>,
            code: &'a str,
        }
        let Self {
            message,
            kind,
            code,
            param,
        } = *self;
        let body = Body {
            error: Members {
                message,
                r#type: kind,
                param,
                code,
            },
        };
        Bytes::from(serde_json::to_vec(&body).expect("four strings are always JSON"))
    }
}

/// The status that the data of an error event stands for.
///
/// A number wins over words, because it is the provider's own; `code` over `type`, because it is the narrower of the
/// two; and 502 is for a failure that says nothing. [FRAME-4] [FRAME-5]
pub(super) fn status(data: &[u8]) -> u16 {
    let mut top = Told::default();
    let mut error = None;
    let mut response = None;
    members(data, |name, value| match name {
        "error" => error = Some(value),
        "response" => response = Some(value),
        _ => top.member(name, value),
    });
    // A failed response carries its error inside the response.
    if let (None, Some(response)) = (error, response) {
        members(response.get().as_bytes(), |name, value| {
            if name == "error" {
                error = Some(value);
            }
        });
    }
    let mut inner = Told::default();
    if let Some(error) = error {
        inner.code = text(error).and_then(|text| named(&text));
        members(error.get().as_bytes(), |name, value| inner.member(name, value));
    }
    inner
        .number
        .or(top.number)
        .or(inner.code)
        .or(inner.kind)
        .or(top.code)
        .or(top.kind)
        .unwrap_or(UNTOLD)
}

/// What one object says of the status.
#[derive(Default)]
struct Told {
    number: Option<u16>,
    code: Option<u16>,
    kind: Option<u16>,
}

impl Told {
    fn member(&mut self, name: &str, value: &RawValue) {
        match name {
            "code" | "status" | "status_code" => {
                self.number = self.number.or_else(|| number(value));
                self.code = self.code.or_else(|| named(&text(value)?));
            }
            "type" => self.kind = named(&text(value).unwrap_or_default()),
            _ => {}
        }
    }
}

/// An error status as a number, or as a string of digits.
fn number(value: &RawValue) -> Option<u16> {
    let digits = value.get().trim_matches('"');
    digits.parse().ok().filter(|status| (400..600).contains(status))
}

/// The status that an error's name stands for. Google writes its names in capitals.
fn named(name: &str) -> Option<u16> {
    let name = name.to_ascii_lowercase();
    NAMES
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|(_, status)| *status)
}

/// By prefix, which holds for the whole names too.
const NAMES: [(&str, u16); 20] = [
    ("rate_limit", 429),
    ("insufficient_quota", 429),
    ("resource_exhausted", 429),
    ("overloaded", 529),
    ("server_is_overloaded", 529),
    ("unavailable", 503),
    ("service_unavailable", 503),
    ("timeout", 504),
    ("deadline_exceeded", 504),
    ("authentication", 401),
    ("unauthenticated", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
    ("not_found", 404),
    ("model_not_found", 404),
    ("invalid_request", 400),
    ("context_length_exceeded", 400),
    ("server_error", 500),
    ("api_error", 500),
    ("internal", 500),
];

/// The status of an error that names none.
const UNTOLD: u16 = 502;
