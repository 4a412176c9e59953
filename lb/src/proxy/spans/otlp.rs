//! Spans in OTLP's JSON form: the protobuf messages of `opentelemetry/proto/trace/v1` by the rules of OTLP/HTTP, which
//! are proto3's but for ids in hexadecimal and enums as numbers.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// What one request of the collector's holds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Export<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: Resource,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Debug, Serialize)]
struct Resource {
    attributes: [Attribute; 2],
}

#[derive(Debug, Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: &'a [Span],
}

#[derive(Debug, Serialize)]
struct Scope {
    name: &'static str,
}

/// One span.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proxy) struct Span {
    #[serde(serialize_with = "trace_id")]
    pub(in crate::proxy) trace_id: u128,
    #[serde(serialize_with = "span_id")]
    pub(in crate::proxy) span_id: u64,
    /// 0 where there is none.
    #[serde(serialize_with = "span_id")]
    pub(in crate::proxy) parent_span_id: u64,
    pub(in crate::proxy) name: Cow<'static, str>,
    pub(in crate::proxy) kind: Kind,
    /// Since the epoch, as the end is.
    #[serde(rename = "startTimeUnixNano", serialize_with = "nanos")]
    pub(in crate::proxy) start: Duration,
    #[serde(rename = "endTimeUnixNano", serialize_with = "nanos")]
    pub(in crate::proxy) end: Duration,
    pub(in crate::proxy) attributes: Vec<Attribute>,
    pub(in crate::proxy) status: Status,
}

/// On whose side of a call a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Kind {
    Server,
    Client,
}

/// How what a span stands for went; without a message it went well, or nobody knows.
#[derive(Debug, Default, Serialize)]
pub(in crate::proxy) struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(in crate::proxy) struct Attribute {
    key: &'static str,
    value: Value,
}

#[derive(Debug, Serialize)]
pub(in crate::proxy) enum Value {
    #[serde(rename = "stringValue")]
    Text(Cow<'static, str>),
    /// As text, since JSON's numbers lose digits of 64 bits.
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "doubleValue")]
    Number(f64),
}

impl Status {
    /// It failed by that.
    pub(in crate::proxy) fn failed(by: &'static str) -> Self {
        const ERROR: u8 = 2;
        Self {
            code: Some(ERROR),
            message: Some(by),
        }
    }
}

impl Attribute {
    pub(in crate::proxy) fn text(key: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        let value = Value::Text(value.into());
        Self { key, value }
    }

    pub(in crate::proxy) fn whole(key: &'static str, value: u16) -> Self {
        let value = Value::Whole(value.to_string());
        Self { key, value }
    }

    pub(in crate::proxy) fn number(key: &'static str, value: f64) -> Self {
        let value = Value::Number(value);
        Self { key, value }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(match self {
            Self::Server => 2,
            Self::Client => 3,
        })
    }
}

/// The body of an export.
pub(super) fn export(spans: &[Span]) -> Vec<u8> {
    let attributes = [
        Attribute::text("service.name", "lb"),
        Attribute::text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let export = Export {
        resource_spans: [ResourceSpans {
            resource: Resource { attributes },
            scope_spans: [ScopeSpans {
                scope: Scope { name: "lb" },
                spans,
            }],
        }],
    };
    // Neither a vector nor these types can fail.
    serde_json::to_vec(&export).unwrap_or_default()
}

fn trace_id<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:032x}"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn span_id<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    if *id == 0 {
        return serializer.serialize_str("");
    }
    serializer.collect_str(&format_args!("{id:016x}"))
}

fn nanos<S: Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&at.as_nanos())
}
