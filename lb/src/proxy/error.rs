//! What an error of lb's own looks like to a client: one table of statuses, types and codes.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::Body;
use crate::wire::openai::ApiError;

/// Why lb answers a request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Every provider is barred for now: its breaker is open, or all its endpoints are out and fail-open is off.
    Barred { left: Duration },
    /// The body is no JSON object with one `model`, or there is no body where one is needed.
    BadBody(String),
    /// The request's head is not what HTTP or lb allows.
    BadRequest(&'static str),
    /// Every target has as many requests as it may.
    ConcurrencyLimit,
    /// The body's content coding cannot be looked into.
    Encoding,
    /// All is draining.
    Draining,
    /// Every target failed and the last left no response; the last status seen, if any.
    Exhausted { status: Option<u16> },
    /// The client expects something that is not known.
    Expectation,
    /// The head is longer than it may be, or has more fields.
    HeadTooLarge,
    /// No client key, or one that is not known.
    InvalidKey,
    /// This key may not use the model, or nobody configured it.
    ModelNotFound { model: String, nearest: Option<String> },
    /// The request has been here before.
    Loop,
    /// No route takes the request.
    NotFound,
    /// Every endpoint is out and fail-open is off.
    NoProvider,
    /// There is no memory left for another request body.
    NoRoom,
    /// There is no socket left for another connection to a provider.
    NoSocket,
    /// No target may be sent another request before so many seconds have passed.
    RateLimit { retry_after: u64 },
    /// The body is longer than `max_body_bytes`.
    TooLarge { limit: u64 },
    /// The client sent its body too slowly.
    SlowBody,
    /// The target is longer than it may be.
    TargetTooLong,
    /// The body is in a transfer coding besides `chunked`.
    UnknownCoding,
    /// The stream ended before its first event, at the last target.
    UpstreamEmpty,
    /// The deadline passed before anything could be committed.
    UpstreamTimeout,
    /// Embeddings asked of a chain whose targets serve different models.
    WrongModelKind,
}

/// A row of the table.
struct Row {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    param: Option<&'static str>,
    retry_after: bool,
}

const fn row(status: StatusCode, kind: &'static str, code: &'static str) -> Row {
    Row {
        status,
        kind,
        code,
        param: None,
        retry_after: false,
    }
}

impl Refusal {
    /// The body did not come as it was announced.
    pub(super) const BROKEN_BODY: Self = Self::BadRequest("the request body broke off or was badly framed");

    fn row(&self) -> Row {
        const INVALID: &str = "invalid_request_error";
        const LIMIT: &str = "rate_limit_error";
        const SERVER: &str = "server_error";
        match self {
            Self::BadBody(_) => row(StatusCode::BAD_REQUEST, INVALID, "invalid_json"),
            Self::BadRequest(_) => row(StatusCode::BAD_REQUEST, INVALID, "bad_request"),
            Self::ConcurrencyLimit => Row {
                retry_after: true,
                ..row(StatusCode::TOO_MANY_REQUESTS, LIMIT, "concurrency_limit_exceeded")
            },
            Self::Barred { .. } | Self::Draining | Self::NoProvider => Row {
                retry_after: true,
                ..row(StatusCode::SERVICE_UNAVAILABLE, SERVER, "no_provider_available")
            },
            Self::Encoding => row(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                INVALID,
                "unsupported_encoding",
            ),
            Self::Exhausted { status } => {
                let status = status
                    .and_then(|code| StatusCode::from_u16(code).ok())
                    .unwrap_or(StatusCode::BAD_GATEWAY);
                Row {
                    retry_after: matches!(status.as_u16(), 429 | 503),
                    ..row(status, SERVER, "upstream_error")
                }
            }
            Self::Expectation => row(StatusCode::EXPECTATION_FAILED, INVALID, "expectation_failed"),
            Self::HeadTooLarge => row(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                INVALID,
                "request_head_too_large",
            ),
            Self::InvalidKey => row(StatusCode::UNAUTHORIZED, INVALID, "invalid_api_key"),
            Self::ModelNotFound { .. } => Row {
                param: Some("model"),
                ..row(StatusCode::NOT_FOUND, INVALID, "model_not_found")
            },
            Self::Loop => row(StatusCode::LOOP_DETECTED, INVALID, "loop_detected"),
            Self::NoRoom => Row {
                retry_after: true,
                ..row(StatusCode::SERVICE_UNAVAILABLE, SERVER, "request_buffer_full")
            },
            Self::NoSocket => Row {
                retry_after: true,
                ..row(StatusCode::SERVICE_UNAVAILABLE, SERVER, "no_socket")
            },
            Self::NotFound => row(StatusCode::NOT_FOUND, INVALID, "not_found"),
            Self::RateLimit { .. } => Row {
                retry_after: true,
                ..row(StatusCode::TOO_MANY_REQUESTS, LIMIT, "rate_limit_exceeded")
            },
            Self::SlowBody => row(StatusCode::REQUEST_TIMEOUT, INVALID, "request_timeout"),
            Self::TargetTooLong => row(StatusCode::URI_TOO_LONG, INVALID, "target_too_long"),
            Self::TooLarge { .. } => row(StatusCode::PAYLOAD_TOO_LARGE, INVALID, "request_too_large"),
            Self::UnknownCoding => row(
                StatusCode::NOT_IMPLEMENTED,
                INVALID,
                "unsupported_transfer_encoding",
            ),
            Self::UpstreamEmpty => row(StatusCode::BAD_GATEWAY, SERVER, "upstream_empty"),
            Self::UpstreamTimeout => row(StatusCode::GATEWAY_TIMEOUT, SERVER, "upstream_timeout"),
            Self::WrongModelKind => Row {
                param: Some("model"),
                ..row(StatusCode::BAD_REQUEST, INVALID, "wrong_model_kind")
            },
        }
    }

    /// The code, for the counter of refusals.
    pub(super) fn code(&self) -> &'static str {
        self.row().code
    }

    /// Whether the connection ends with this answer: where the rest of the request is not wanted, or may not be where
    /// it seems to be.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(
            self,
            Self::BadRequest(_)
                | Self::Encoding
                | Self::Expectation
                | Self::HeadTooLarge
                | Self::NoRoom
                | Self::SlowBody
                | Self::TargetTooLong
                | Self::TooLarge { .. }
                | Self::UnknownCoding
        )
    }

    fn message(&self) -> String {
        match self {
            Self::BadBody(what) => what.clone(),
            Self::BadRequest(what) => (*what).to_owned(),
            Self::ConcurrencyLimit => {
                "every provider of this model has as many requests as it may".to_owned()
            }
            Self::Draining => "this instance is shutting down".to_owned(),
            Self::Encoding => {
                "a compressed request body cannot be routed by its model; send it uncompressed".to_owned()
            }
            Self::Exhausted { .. } => "every provider of this model failed".to_owned(),
            Self::Expectation => "the only expectation that is met here is `100-continue`".to_owned(),
            Self::HeadTooLarge => {
                "the request's head is longer than 128 KiB or has more than 100 fields".to_owned()
            }
            Self::InvalidKey => "missing or unknown API key".to_owned(),
            Self::ModelNotFound {
                model,
                nearest: Some(nearest),
            } => {
                format!("model `{model}` does not exist; did you mean `{nearest}`?")
            }
            Self::ModelNotFound { model, nearest: None } => format!("model `{model}` does not exist"),
            Self::Loop => "the request has passed through this instance before".to_owned(),
            Self::NoRoom => "too many request bodies are being held; try again soon".to_owned(),
            Self::NoSocket => "no connection to a provider can be made just now; try again soon".to_owned(),
            Self::Barred { .. } | Self::NoProvider => {
                "every provider of this model is out of service".to_owned()
            }
            Self::NotFound => "nothing is served under this path".to_owned(),
            Self::RateLimit { .. } => "this model has had as many requests as it may for now".to_owned(),
            Self::SlowBody => "the request body took too long to arrive".to_owned(),
            Self::TargetTooLong => "the request's target is longer than 64 KiB".to_owned(),
            Self::TooLarge { limit } => format!("the request body is longer than {limit} bytes"),
            Self::UnknownCoding => "the only transfer coding that is read here is `chunked`".to_owned(),
            Self::UpstreamEmpty => "the provider ended its stream before the first event".to_owned(),
            Self::UpstreamTimeout => "no provider answered in time".to_owned(),
            Self::WrongModelKind => {
                "this model's targets would give vectors of different models; ask one of kind `embedding`"
                    .to_owned()
            }
        }
    }

    /// Whole seconds to wait, at least one.
    fn retry_after(&self) -> HeaderValue {
        match self {
            Self::Barred { left } => {
                let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
                HeaderValue::from(seconds.max(1))
            }
            Self::RateLimit { retry_after } => HeaderValue::from(*retry_after),
            _ => HeaderValue::from_static("1"),
        }
    }

    /// The response to send. `attempts` were made before: after two of lb's own, a client's retries only multiply
    /// the load, and it is told so unless it is told when to come back instead.
    pub(super) fn response(&self, attempts: u32) -> Response<Body> {
        let row = self.row();
        let error = ApiError {
            message: &self.message(),
            kind: row.kind,
            code: row.code,
            param: row.param,
        };
        let mut response = json(row.status, error.to_bytes());
        let headers = response.headers_mut();
        if row.retry_after {
            headers.insert(RETRY_AFTER, self.retry_after());
        } else if row.status.is_server_error() && attempts >= 2 {
            headers.insert(
                HeaderName::from_static("x-should-retry"),
                HeaderValue::from_static("false"),
            );
        }
        response
    }
}

/// A JSON response.
pub(super) fn json(status: StatusCode, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What an error event said, as a response: JSON, unless it was something else.
pub(super) fn as_sent(status: StatusCode, data: Bytes) -> Response<Body> {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&data).is_ok();
    let mut response = json(status, data);
    if !is_json {
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
    }
    response
}
