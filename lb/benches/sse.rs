//! How fast the wire layer reads: streams as providers send them, and bodies as clients do.
//!
//! `cargo bench -p lb --bench sse`. Goals: above 1 GB/s for the observer on token-sized events.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};

use lb::wire::envelope::Scanner;
use lb::wire::openai::{classify, is_finish};
use lb::wire::sse::Observer;

fn main() {
    divan::main();
}

/// Events by name, with their framing: a chunk of a chat completion as vLLM writes it (210 bytes), the least that a
/// token can be (60), and the least of all (9 and 8).
fn event(name: &str) -> &'static str {
    match name {
        "token" => concat!(
            r#"data: {"id":"chatcmpl-7f3a9b1c2d4e5f60","object":"chat.completion.chunk","created":1760000000,"#,
            r#""model":"llama-3.3-70b","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"#,
            r#""finish_reason":null}]}"#,
            "\n\n"
        ),
        "small_token" => "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" tok\"}}]}\n\n",
        "byte" => "data: x\n\n",
        _ => ": ping\n\n",
    }
}

const EVENTS: [&str; 4] = ["token", "small_token", "byte", "comment"];
const STREAM_BYTES: usize = 1 << 20;
const MAX_EVENT_BYTES: usize = 1 << 20;

fn stream(name: &str) -> Vec<u8> {
    let event = event(name);
    event.repeat(STREAM_BYTES / event.len()).into_bytes()
}

/// One event in each read, as a provider's flush after every token makes them.
#[divan::bench(args = EVENTS)]
fn observe_one_event_a_chunk(bencher: Bencher<'_, '_>, name: &str) {
    let stream = stream(name);
    bencher
        .counter(BytesCount::new(stream.len()))
        .bench_local(|| observe(&stream, event(name).len()));
}

/// Reads of 16 KiB, as after a stall: many events in each, and one cut at its edge.
#[divan::bench(args = EVENTS)]
fn observe_16_kib_chunks(bencher: Bencher<'_, '_>, name: &str) {
    let stream = stream(name);
    bencher
        .counter(BytesCount::new(stream.len()))
        .bench_local(|| observe(&stream, 16 << 10));
}

/// Reads of 100 bytes: nearly every event is split, and copied.
#[divan::bench]
fn observe_split_events(bencher: Bencher<'_, '_>) {
    let stream = stream("token");
    bencher
        .counter(BytesCount::new(stream.len()))
        .bench_local(|| observe(&stream, 100));
}

fn observe(stream: &[u8], chunk: usize) -> usize {
    let mut observer = Observer::new(MAX_EVENT_BYTES);
    let mut events = 0;
    for chunk in stream.chunks(chunk) {
        observer.feed(chunk, |event| events += black_box(event).data.len());
    }
    events
}

/// All that strict mode asks about a token after commit.
#[divan::bench(args = ["token", "small_token"])]
fn observe_and_classify(bencher: Bencher<'_, '_>, name: &str) {
    let stream = stream(name);
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut observer = Observer::new(MAX_EVENT_BYTES);
        for chunk in stream.chunks(event(name).len()) {
            observer.feed(chunk, |event| {
                black_box((
                    classify(event.kind, event.data),
                    is_finish(event.kind, event.data),
                ));
            });
        }
    });
}

/// A conversation of short messages, an image in base64, and a batch of token ids, all with the model at the end.
#[divan::bench(args = ["messages", "escapes", "image", "integers"])]
fn scan_body(bencher: Bencher<'_, '_>, of: &str) {
    let message = match of {
        "messages" => {
            r#"{"role":"user","content":"How does a load balancer keep its share near what is possible?"}"#
        }
        "escapes" => {
            r#"{"role":"user","content":"fn main() {\n    println!(\"hello\\n\");\n}\n\n// \u00e9\n"}"#
        }
        "image" => &format!(
            r#"{{"image_url":"data:image/png;base64,{}"}}"#,
            "iVBORw0KGgo".repeat(9000)
        ),
        _ => "[15496,11,314,716,257,3303,2746]",
    };
    let messages = vec![message; STREAM_BYTES / message.len()].join(",");
    let body = format!(r#"{{"messages":[{messages}],"stream":true,"model":"llama"}}"#).into_bytes();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let mut scanner = Scanner::new();
        for chunk in body.chunks(16 << 10) {
            scanner.feed(chunk).expect("the body is JSON");
        }
        scanner.finish().expect("the body is complete")
    });
}
