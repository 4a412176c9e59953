//! One probe of one endpoint. Who is probed when is up to [`crate::run`]; what becomes of it, to endpoint health.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::config::{Probe, ProbeKind};
use crate::net::{self, Client, Destination, Error, Fields, Request};
use crate::policy::health::Probed;

/// Whom a probe goes to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Where it is.
    pub destination: &'a Arc<Destination>,
    /// What `host` says to it.
    pub host: &'a HeaderValue,
    /// The provider's own fields, its key among them.
    pub fields: &'a [(HeaderName, HeaderValue)],
}

/// Probes once, within the probe's timeout; `None` where it could not be sent for want of a socket or of a free
/// connection, which says nothing of the endpoint. Dropped, its connection is closed.
pub async fn probe(client: &Client, probe: &Probe, target: Target<'_>) -> Option<Probed> {
    let result = match &probe.kind {
        ProbeKind::Tcp => {
            let reached = net::reach(target.destination, None, probe.timeout).await;
            reached.map(|()| Probed::Good)
        }
        ProbeKind::Http { .. } => {
            let asked = timeout(probe.timeout, ask(client, probe, target)).await;
            asked.unwrap_or(Err(Error::ConnectTimeout))
        }
    };
    match result {
        Ok(probed) => Some(probed),
        Err(Error::ConnectTimeout) => Some(Probed::TimedOut),
        Err(error) => {
            tracing::debug!(%error, "probe failed");
            (!matches!(error, Error::Full | Error::Local(_))).then_some(Probed::Bad)
        }
    }
}

async fn ask(client: &Client, probe: &Probe, target: Target<'_>) -> Result<Probed, Error> {
    let ProbeKind::Http {
        path,
        method,
        expected,
        auth,
    } = &probe.kind
    else {
        return Ok(Probed::Good);
    };
    let path: PathAndQuery = path
        .parse()
        .unwrap_or_else(|_checked_when_it_was_read| PathAndQuery::from_static("/"));
    let added = [(header::USER_AGENT, HeaderValue::from_static("lb-probe"))];
    let request = Request {
        method,
        target: &path,
        host: target.host,
        headers: Fields {
            client: &HeaderMap::new(),
            passes: &|_| false,
            added: &added,
            set: if *auth { target.fields } else { &[] },
        },
        body: None,
        trailers: None,
        takes_trailers: false,
        interims: None,
        upgrade: None,
    };
    // Fresh, since whether a connection can be made is half of the question.
    let response = client
        .send(&request, target.destination, true, probe.timeout)
        .await?;
    let code = response.status().as_u16();
    // A short answer is read to its end, so that the endpoint sees no broken connection; a long one is not waited for.
    drop(
        http_body_util::Limited::new(response.into_body(), ENOUGH)
            .collect()
            .await,
    );
    Ok(match code {
        _ if expected.contains(code) => Probed::Good,
        401 | 403 => Probed::Misconfigured,
        _ => Probed::Bad,
    })
}

/// Of an answer's body that is read. Bytes.
const ENOUGH: usize = 64 << 10;
