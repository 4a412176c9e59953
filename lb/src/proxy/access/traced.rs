//! The spans of a request, by its line.

use std::borrow::Cow;
use std::time::Duration;

use super::line::{Line, Tried};
use crate::metrics::AttemptOutcome;
use crate::proxy::spans::{Attribute, Kind, Span, Status, Trace};

/// The request's own span, and one for each of its attempts below it. Names of `gen_ai` and `http` are OpenTelemetry's.
pub(super) fn spans(line: &Line, trace: Trace) -> Vec<Span> {
    let record = line.record();
    let began = line.unix;
    let (begun, total) = line.span_of_time();
    let operation = operation(record.path);
    let asked = record.preset.or(record.model);
    let mut attributes = vec![
        Attribute::text("http.request.method", record.method.to_owned()),
        Attribute::text("url.path", record.path.to_owned()),
        Attribute::text("client.address", record.client.to_string()),
        Attribute::text("lb.request_id", record.request_id.to_owned()),
        Attribute::text("lb.outcome", record.outcome),
    ];
    let status = record.status;
    attributes.extend(status.map(|status| Attribute::whole("http.response.status_code", status)));
    attributes.extend(operation.map(|name| Attribute::text("gen_ai.operation.name", name)));
    attributes.extend(asked.map(|model| Attribute::text("gen_ai.request.model", model.to_owned())));
    attributes.extend(record.key.map(|key| Attribute::text("lb.key", key.to_owned())));
    let first_token = record.first_token_ms.map(|ms| ms / 1000.0);
    attributes
        .extend(first_token.map(|seconds| Attribute::number("gen_ai.server.time_to_first_token", seconds)));
    let failed = record.status.is_some_and(|status| status >= 500) || record.outcome == "truncated";
    let mut all = vec![span(
        (trace, trace.span, trace.parent),
        Kind::Server,
        name(operation, asked, record.method),
        (began, began + total),
        (attributes, failed.then_some(record.outcome)),
    )];
    all.extend(line.attempts.iter().zip(&record.attempts).map(|(tried, told)| {
        let started = tried.started.since(begun);
        // A committed attempt lasts until its body has ended, which only the last one has.
        let length = match tried.ended {
            Some((outcome, length)) if outcome != AttemptOutcome::Ok => length,
            _ => total.saturating_sub(started),
        };
        let model = line.upstream_model(tried).or(record.model);
        let failed = failure(tried);
        let mut attributes = vec![
            Attribute::text("gen_ai.provider.name", told.provider.to_owned()),
            Attribute::text("lb.endpoint", told.endpoint.to_owned()),
            Attribute::text("lb.outcome", told.outcome),
        ];
        attributes.extend(operation.map(|name| Attribute::text("gen_ai.operation.name", name)));
        attributes.extend(model.map(|model| Attribute::text("gen_ai.request.model", model.to_owned())));
        attributes.extend(failed.map(|outcome| Attribute::text("error.type", outcome)));
        span(
            (trace, tried.span, trace.span),
            Kind::Client,
            name(operation, model, record.method),
            (began + started, began + started + length),
            (attributes, failed),
        )
    }));
    all
}

/// What an attempt failed by.
fn failure(tried: &Tried) -> Option<&'static str> {
    let (outcome, _) = tried.ended?;
    let blameless = matches!(
        outcome,
        AttemptOutcome::Ok | AttemptOutcome::Cancelled | AttemptOutcome::Outrun
    );
    (!blameless).then(|| outcome.as_str())
}

/// OpenTelemetry's word for what is asked under a path.
fn operation(path: &str) -> Option<&'static str> {
    match path {
        "/v1/chat/completions" | "/v1/responses" | "/v1/messages" => Some("chat"),
        "/v1/completions" => Some("text_completion"),
        "/v1/embeddings" => Some("embeddings"),
        _ => None,
    }
}

fn name(operation: Option<&'static str>, model: Option<&str>, method: &str) -> Cow<'static, str> {
    match (operation, model) {
        (Some(operation), Some(model)) => format!("{operation} {model}").into(),
        (Some(operation), None) => operation.into(),
        (None, _) => method.to_owned().into(),
    }
}

fn span(
    (trace, id, parent): (Trace, u64, u64),
    kind: Kind,
    name: Cow<'static, str>,
    (start, end): (Duration, Duration),
    (attributes, failed): (Vec<Attribute>, Option<&'static str>),
) -> Span {
    Span {
        trace_id: trace.id,
        span_id: id,
        parent_span_id: parent,
        name,
        kind,
        start,
        end: end.max(start + Duration::from_nanos(1)),
        attributes,
        status: failed.map_or_else(Status::default, Status::failed),
    }
}
