//! What the admin listener answers.

use std::fmt;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::token::Token;
use crate::upstream::State;

/// One thing that readiness depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name in the verbose answer.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
}

/// What can be asked of the running process.
pub struct View {
    /// Needed for everything but the probes; `None` where the address is loopback and none is configured.
    pub token: Option<Token>,
    /// The text exposition of all series, as of now.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The state, as of now.
    pub state: Box<dyn Fn() -> State + Send + Sync>,
    /// What readiness depends on.
    pub checks: Box<dyn Fn() -> Vec<Check> + Send + Sync>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// The state as the API shows it.
#[derive(serde::Serialize)]
struct Shown {
    version: &'static str,
    #[serde(flatten)]
    state: State,
}

impl View {
    /// Answers one request.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "ok\n"),
            "/healthz" | "/readyz" => self.ready(request.uri().query()),
            path => self.guarded(request, path),
        }
    }

    /// Ready to be sent traffic: not "a provider is healthy", since one sick vendor must not take every lb out of
    /// rotation. [ADMIN-2]
    fn ready(&self, query: Option<&str>) -> Response<Full<Bytes>> {
        let checks = (self.checks)();
        let ready = checks.iter().all(|check| check.ok);
        let status = if ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let verbose = query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
        if !verbose {
            return text(status, if ready { "ok\n" } else { "not ready\n" });
        }
        let lines = checks.iter().map(|check| {
            if check.ok {
                format!("[+]{} ok\n", check.name)
            } else {
                format!("[-]{} failed\n", check.name)
            }
        });
        text(status, lines.collect::<String>())
    }

    fn guarded<B>(&self, request: &Request<B>, path: &str) -> Response<Full<Bytes>> {
        if self
            .token
            .as_ref()
            .is_some_and(|token| !token.is_in(request.headers()))
        {
            let mut response = error(
                StatusCode::UNAUTHORIZED,
                "invalid_api_key",
                "a bearer token is needed",
            );
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return response;
        }
        if self.token.is_none() && !is_local(request) {
            // A page in a browser on this machine can name loopback by any name that resolves to it.
            return error(
                StatusCode::FORBIDDEN,
                "forbidden_host",
                "ask for this by a loopback address",
            );
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = error(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "only GET is served here",
            );
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match path {
            "/api/v1/state" => self.show_state(),
            "/metrics" => typed(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                (self.metrics)(),
            ),
            _ => error(
                StatusCode::NOT_FOUND,
                "not_found",
                "nothing is served under this path",
            ),
        }
    }

    fn show_state(&self) -> Response<Full<Bytes>> {
        let shown = Shown {
            version: env!("CARGO_PKG_VERSION"),
            state: (self.state)(),
        };
        match serde_json::to_string(&shown) {
            Ok(json) => typed(StatusCode::OK, "application/json", json),
            Err(_) => error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the state cannot be written as JSON",
            ),
        }
    }
}

/// Whether a request names this machine by a loopback address, and comes from no page elsewhere.
fn is_local<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
    let loopback = matches!(name, "localhost" | "[::1]") || name.starts_with("127.");
    loopback && !headers.contains_key(ORIGIN)
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn error(status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    let kind = if status.is_server_error() {
        "server_error"
    } else {
        "invalid_request_error"
    };
    let body =
        serde_json::json!({ "error": { "message": message, "type": kind, "param": null, "code": code } });
    typed(status, "application/json", body.to_string())
}

#[cfg(test)]
mod tests;
