use super::*;

fn fields(traceparent: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert("traceparent", HeaderValue::from_str(traceparent).unwrap());
    fields
}

fn spans(ratio: f64, room: usize) -> (Spans, mpsc::Receiver<Message>) {
    let (queue, rest) = mpsc::channel(room);
    let dropped = IntCounter::new("dropped", "Dropped.").unwrap();
    (
        Spans {
            queue,
            dropped,
            ratio,
        },
        rest,
    )
}

const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

// [SPAN-1]
#[test]
fn a_trace_is_the_clients_where_it_has_one_and_new_otherwise() {
    let (all, _rest) = spans(1.0, 1);
    let trace = all.begin(&fields(SAMPLED), false).expect("all are traced");
    assert_eq!(
        (trace.id, trace.parent),
        (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)
    );
    for none in [
        "",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "nonsense",
    ] {
        let trace = all.begin(&fields(none), true).expect("all are traced");
        assert_eq!(trace.parent, 0, "{none}");
        assert!(trace.id != 0 && trace.span != 0);
    }
    let hop = trace.hop();
    assert_ne!(hop.span, trace.span);
    assert_eq!(
        hop.traceparent(),
        format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{:016x}-01", hop.span)
    );
}

// [SPAN-2]
#[test]
fn a_trusted_peer_has_its_requests_traced_and_of_others_the_same_part_is() {
    let (none, _rest) = spans(0.0, 1);
    assert!(none.begin(&fields(SAMPLED), true).is_some());
    assert!(none.begin(&fields(SAMPLED), false).is_none());
    assert!(none.begin(&fields(UNSAMPLED), true).is_none());
    assert!(none.begin(&HeaderMap::new(), true).is_none());
    let mut random = fastrand::Rng::with_seed(1);
    let ids: Vec<u128> = (0..10_000).map(|_| random.u128(1..)).collect();
    let part = |ratio| ids.iter().filter(|id| is_sampled(**id, ratio)).count();
    assert_eq!((part(0.0), part(1.0)), (0, 10_000));
    assert!((900..1100).contains(&part(0.1)), "{}", part(0.1));
}

// [SPAN-3]
#[test]
fn what_finds_the_queue_full_is_counted() {
    let (spans, rest) = spans(1.0, 2);
    for _ in 0..5 {
        spans.send(Vec::new());
    }
    assert_eq!(
        (spans.dropped.get(), rest.len()),
        (0, 2),
        "there was nothing in them"
    );
    let (full, _rest) = self::spans(1.0, 1);
    full.send(Vec::new());
    full.send(vec![empty(), empty()]);
    assert_eq!(full.dropped.get(), 2);
}

fn empty() -> Span {
    Span {
        trace_id: 1,
        span_id: 2,
        parent_span_id: 0,
        name: "chat m".into(),
        kind: Kind::Server,
        start: std::time::Duration::from_secs(1_700_000_000),
        end: std::time::Duration::from_nanos(1_700_000_000_000_000_001),
        attributes: vec![
            Attribute::text("a", "b"),
            Attribute::whole("c", 200),
            Attribute::number("d", 0.5),
        ],
        status: Status::failed("timeout"),
    }
}

// [SPAN-4]
#[test]
fn an_export_is_otlp_as_json() {
    let text = String::from_utf8(otlp::export(&[empty()])).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = concat!(
        r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"lb"}},"#,
        r#"{"key":"service.version","value":{"stringValue":"VERSION"}}]},"scopeSpans":[{"scope":{"name":"lb"},"spans":["#,
        r#"{"traceId":"00000000000000000000000000000001","spanId":"0000000000000002","parentSpanId":"","name":"chat m","#,
        r#""kind":2,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000000001","attributes":["#,
        r#"{"key":"a","value":{"stringValue":"b"}},{"key":"c","value":{"intValue":"200"}},"#,
        r#"{"key":"d","value":{"doubleValue":0.5}}],"status":{"code":2,"message":"timeout"}}]}]}]}"#,
    );
    assert_eq!(text, expected.replace("VERSION", version));
}
