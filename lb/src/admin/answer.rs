//! What the admin listener answers.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
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

/// What came of reading the configuration again.
#[derive(Clone, Debug, PartialEq)]
pub enum Reloaded {
    /// It is in force.
    Done {
        /// What of it differs and waits for a restart.
        waiting: Vec<&'static str>,
    },
    /// It is not, and what was before is.
    Refused {
        /// What a start would have ended with.
        code: u8,
        /// Why, in words.
        message: String,
        /// The problems, where they are the file's.
        report: Option<serde_json::Value>,
    },
    /// Nobody is there to do it.
    Unavailable,
}

/// What can be asked of the running process.
pub struct View {
    /// Needed for everything but the probes; none where the address is loopback and none is configured.
    pub token: ArcSwapOption<Token>,
    /// Has the configuration read again, and waits for what comes of it.
    pub reload: Box<dyn Fn() -> Pin<Box<dyn Future<Output = Reloaded> + Send>> + Send + Sync>,
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
            .field("token", &self.token.load())
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
    /// Wants another token from now on, or none.
    pub fn set_token(&self, token: Option<Token>) {
        self.token.store(token.map(Arc::new));
    }

    /// Answers one request.
    pub(super) async fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "ok\n"),
            "/healthz" | "/readyz" => self.ready(request.uri().query()),
            path => match (self.refusal(request), path) {
                (Some(refusal), _) => refusal,
                (None, "/api/v1/reload") => self.reload(request.method()).await,
                (None, path) => self.show(request.method(), path),
            },
        }
    }

    async fn reload(&self, method: &Method) -> Response<Full<Bytes>> {
        if *method != Method::POST {
            return not_allowed("POST");
        }
        let (status, answer) = match (self.reload)().await {
            Reloaded::Done { waiting } => (
                StatusCode::OK,
                serde_json::json!({ "reloaded": true, "waiting_for_restart": waiting }),
            ),
            Reloaded::Refused { message, report, .. } => {
                let error = serde_json::json!({
                    "message": message, "type": "invalid_request_error", "param": null,
                    "code": "invalid_configuration",
                });
                let answer = serde_json::json!({ "error": error, "report": report });
                (StatusCode::UNPROCESSABLE_ENTITY, answer)
            }
            Reloaded::Unavailable => {
                let message = "lb is ending, or busy with other reloads";
                return error(StatusCode::SERVICE_UNAVAILABLE, "reload_unavailable", message);
            }
        };
        typed(status, "application/json", answer.to_string())
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

    /// Why somebody may not ask for more than the probes.
    fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let token = self.token.load();
        if token
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
            return Some(response);
        }
        // A page in a browser on this machine can name loopback by any name that resolves to it.
        (token.is_none() && !is_local(request)).then(|| {
            error(
                StatusCode::FORBIDDEN,
                "forbidden_host",
                "ask for this by a loopback address",
            )
        })
    }

    fn show(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD");
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

fn not_allowed(allowed: &'static str) -> Response<Full<Bytes>> {
    let message = format!("only {allowed} is served here");
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
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
    // As an address or a whole name: other names may be anybody's, and lead here all the same.
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let loopback = name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
        || address.is_some_and(|address| address.parse() == Ok(Ipv6Addr::LOCALHOST));
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
