use std::time::Duration;

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};

use super::*;
use crate::upstream::Fallback;

const EXEMPT: HeaderName = HeaderName::from_static("x-lb-exempt");

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    fields.collect()
}

/// The fields with what is known of them.
fn whole(client: HeaderMap) -> (HeaderMap, Present) {
    let present = Present::among(&client);
    (client, present)
}

fn peer(trusted: bool) -> Peer {
    Peer::new([192, 0, 2, 7].into(), trusted, false)
}

/// What a provider gets of a client's fields, with `set` as its own.
fn sent(client: HeaderMap, trusted: bool, passthrough_auth: bool, set: &[Field]) -> HeaderMap {
    let id = HeaderValue::from_static("id-1");
    let fields = Forwardable::new(whole(client), &peer(trusted), id, true);
    let kept = Kept {
        auth: passthrough_auth,
        trace: false,
    };
    let passes = |name: &HeaderName| fields.passes(name, kept, &EXEMPT);
    let sent = fields.fields(set, &passes).iter();
    let mut all = HeaderMap::new();
    for (name, value) in sent {
        all.append(name, value.clone());
    }
    all
}

fn forwarded_of(fields: &[(&'static str, &'static str)], trusted: bool) -> HeaderMap {
    sent(map(fields), trusted, false, &[])
}

// [PROXY-1]
#[test]
fn fields_of_this_hop_and_of_lb_itself_end_here() {
    let sent = forwarded_of(
        &[
            ("connection", "keep-alive, x-private"),
            ("x-private", "1"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("content-length", "3"),
            ("x-lb-exempt", "1"),
            ("x-lb-model", "m"),
            ("traceparent", "00-1-2-3"),
            ("accept", "text/event-stream"),
        ],
        false,
    );
    let mut names: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "accept-encoding",
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-request-id"
        ]
    );
    assert_eq!(sent[header::ACCEPT_ENCODING], "identity");
}

// [PROXY-2]
#[test]
fn only_a_trusted_peer_is_believed_about_where_a_request_came_from() {
    let spoofed: &[(&'static str, &'static str)] = &[
        ("host", "api.example"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "else.example"),
        ("forwarded", "for=203.0.113.9"),
    ];
    let untrusted = forwarded_of(spoofed, false);
    assert_eq!(untrusted["x-forwarded-for"], "192.0.2.7");
    assert_eq!(untrusted["x-forwarded-proto"], "http");
    assert_eq!(untrusted["x-forwarded-host"], "api.example");
    assert_eq!(untrusted[header::FORWARDED], "for=192.0.2.7;proto=http");
    let trusted = forwarded_of(spoofed, true);
    assert_eq!(trusted["x-forwarded-for"], "203.0.113.9, 192.0.2.7");
    assert_eq!(trusted["x-forwarded-proto"], "https");
    assert_eq!(trusted["x-forwarded-host"], "else.example");
    assert_eq!(
        trusted[header::FORWARDED],
        "for=203.0.113.9, for=192.0.2.7;proto=http"
    );
    let silent = forwarded_of(&[("host", "api.example")], true);
    assert_eq!(silent["x-forwarded-for"], "192.0.2.7");
    assert_eq!(silent["x-forwarded-proto"], "http");
    assert_eq!(silent["x-forwarded-host"], "api.example");
}

// [PROXY-2]
#[test]
fn an_ipv6_client_is_quoted_where_its_colons_would_mean_something() {
    let peer = Peer::new("2001:db8::7".parse().unwrap(), false, true);
    assert_eq!(peer.text, "2001:db8::7");
    assert_eq!(peer.forwarded, "for=\"[2001:db8::7]\";proto=https");
}

// [PROXY-3]
#[test]
fn a_clients_credentials_stay_here_and_the_providers_fields_come_on_top() {
    let client: &[(&'static str, &'static str)] = &[
        ("authorization", "Bearer client"),
        ("x-api-key", "client"),
        ("api-key", "client"),
        ("cookie", "session=client"),
        ("openai-organization", "org"),
        ("openai-project", "project"),
        ("user-agent", "sdk"),
    ];
    let set = [
        (header::USER_AGENT, HeaderValue::from_static("lb")),
        (
            HeaderName::from_static("x-region"),
            HeaderValue::from_static("eu"),
        ),
        (X_REQUEST_ID, HeaderValue::from_static("configured")),
    ];
    let ours = [
        ("accept-encoding", "identity"),
        ("x-forwarded-for", "192.0.2.7"),
        ("forwarded", "for=192.0.2.7;proto=http"),
        ("x-forwarded-proto", "http"),
        ("user-agent", "lb"),
        ("x-region", "eu"),
        ("x-request-id", "configured"),
    ];
    assert_eq!(sent(map(client), false, false, &set), map(&ours));
    let with_the_clients: Vec<_> = client[..6].iter().chain(&ours).copied().collect();
    assert_eq!(sent(map(client), false, true, &set), map(&with_the_clients));
}

// [PROXY-4]
#[test]
fn a_request_id_is_kept_from_a_trusted_peer_and_made_for_any_other() {
    let given = map(&[("x-request-id", "theirs")]);
    assert_eq!(request_id(&given, &peer(true), 0, 0), "theirs");
    let made = request_id(&given, &peer(false), 0x0190_1234_5678, u128::MAX);
    assert_eq!(made, "01901234-5678-7fff-bfff-ffffffffffff");
    assert_eq!(
        request_id(&HeaderMap::new(), &peer(true), 1, 0),
        "00000000-0001-7000-8000-000000000000"
    );
}

// [PROXY-5]
#[test]
fn a_response_loses_its_hop_fields_and_its_length_but_a_head_response_keeps_the_length() {
    let from = map(&[
        ("connection", "close"),
        ("content-length", "12"),
        ("content-type", "text/plain"),
    ]);
    let mut relayed = from.clone();
    returnable(&mut relayed, false);
    assert_eq!(relayed, map(&[("content-type", "text/plain")]));
    let mut bodiless = from;
    returnable(&mut bodiless, true);
    assert_eq!(
        bodiless,
        map(&[("content-length", "12"), ("content-type", "text/plain")])
    );
}

// [PROXY-6]
#[test]
fn a_client_is_told_who_answered_only_as_far_as_configured() {
    let by = By {
        provider: "gpu",
        endpoint: "gpu-0",
        upstream_model: Some("llama"),
        fallback: None,
        queue: None,
        first_token: None,
    };
    let told = |level| {
        let mut headers = HeaderMap::new();
        reveal(&mut headers, by, 2, level);
        headers
    };
    assert_eq!(told(Reveal::None), HeaderMap::new());
    let provider = map(&[
        ("x-lb-provider", "gpu"),
        ("x-lb-attempts", "2"),
        ("x-lb-model", "llama"),
    ]);
    assert_eq!(told(Reveal::Provider), provider);
    assert_eq!(told(Reveal::Endpoint)["x-lb-endpoint"], "gpu-0");
}

// [NOTICE-1]
#[test]
fn a_degraded_answer_says_so_to_everybody_and_by_whom_only_where_that_may_be_told() {
    let told = |notice, level| {
        let fallback = Fallback {
            preset: "small".into(),
            notice,
        };
        let by = By {
            provider: "spare",
            endpoint: "spare-0",
            upstream_model: None,
            fallback: Some(&fallback),
            queue: Some(Duration::from_micros(15)),
            first_token: Some(Duration::from_millis(70)),
        };
        let mut headers = map(&[("server-timing", "db;dur=1")]);
        reveal(&mut headers, by, 1, level);
        headers
    };
    for (notice, degraded) in [
        (Notice::Header, true),
        (Notice::Comment, true),
        (Notice::None, false),
    ] {
        let headers = told(notice, Reveal::None);
        assert_eq!(headers.contains_key("x-lb-degraded"), degraded, "{notice:?}");
        assert_eq!(headers.len(), 1 + usize::from(degraded), "{headers:?}");
    }
    let headers = told(Notice::Header, Reveal::Provider);
    assert_eq!(headers["x-lb-fallback"], "small");
    let timing: Vec<_> = headers.get_all("server-timing").iter().collect();
    assert_eq!(timing, ["db;dur=1", "queue;dur=0.015, ttft;dur=70"]);
}

// [TRACE-1]
#[test]
fn a_trace_context_goes_only_to_a_provider_that_is_to_have_it() {
    let client = map(&[
        ("traceparent", "00-1-2-3"),
        ("tracestate", "a=b"),
        ("cookie", "c"),
    ]);
    let fields = Forwardable::new(whole(client), &peer(true), HeaderValue::from_static("id-1"), true);
    for trace in [false, true] {
        let kept = Kept { auth: false, trace };
        let passes = |name| fields.passes(&HeaderName::from_static(name), kept, &EXEMPT);
        assert_eq!(
            ["traceparent", "tracestate", "cookie"].map(passes),
            [trace, trace, false]
        );
    }
}
