//! What the head of an event stream tells the proxies before lb.

use lb_tests::client::{Answer, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

async fn said(lb: &Lb, provider: &Provider, fields: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    provider.next(Script::stream_with(fields).token("a").finish());
    let answer = lb.chat(true).await;
    assert_eq!(answer.status(), 200);
    (all(&answer, "cache-control"), all(&answer, "x-accel-buffering"))
}

fn all(answer: &Answer, name: &str) -> Vec<String> {
    let values = answer.head.all(name).into_iter();
    values.map(str::to_owned).collect()
}

// field fault H6
// [STREAM-30]
#[tokio::test]
async fn a_stream_asks_not_to_be_held_back_where_its_provider_says_nothing() {
    let ours = (vec!["no-cache, no-transform".to_owned()], vec!["no".to_owned()]);
    for mode in ["strict", "passthrough"] {
        let provider = Provider::start(Script::completion("ok")).await;
        let lb = Lb::start(&Setup::single(&provider).model(&format!("stream_mode: {mode}"))).await;
        assert_eq!(said(&lb, &provider, &[]).await, ours, "{mode}");
        // Each where the provider says it stays as it is, in whatever case, twice, or empty.
        let (cache, buffering) = said(&lb, &provider, &[("Cache-Control", "no-cache")]).await;
        assert_eq!((&cache[..], &buffering), (&["no-cache".to_owned()][..], &ours.1));
        let twice = [("cache-control", "no-cache"), ("cache-control", "private")];
        assert_eq!(said(&lb, &provider, &twice).await.0, ["no-cache", "private"]);
        let (cache, buffering) = said(&lb, &provider, &[("X-Accel-Buffering", "yes")]).await;
        assert_eq!((&cache, &buffering[..]), (&ours.0, &["yes".to_owned()][..]));
        let compressed = said(&lb, &provider, &[("content-encoding", "gzip")]).await;
        assert_eq!(compressed, ours, "{mode}");
        // What is no stream is nobody's to hold back or not.
        let answer = lb.chat(true).await;
        assert_eq!(
            all(&answer, "cache-control").len() + all(&answer, "x-accel-buffering").len(),
            0
        );
    }
}

// field fault H6
// [STREAM-30]
#[tokio::test]
async fn a_stream_asks_for_nothing_where_that_is_off_or_its_route_takes_it_away() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider).server("sse_headers: false")).await;
    assert_eq!(said(&lb, &provider, &[]).await, (vec![], vec![]));
    let route = "routes: [{ match: { path_prefix: / }, to: models, response_headers: { remove: [x-accel-buffering] } }]";
    let lb = Lb::start(&Setup::single(&provider).section(route)).await;
    let (cache, buffering) = said(&lb, &provider, &[]).await;
    assert_eq!((cache.len(), buffering.len()), (1, 0));
    // A route to a provider is no different.
    let route = "routes: [{ match: { path_prefix: / }, to: { provider: gpu } }]";
    let lb = Lb::start(&Setup::single(&provider).section(route)).await;
    provider.next(Script::stream_with(&[]).data("x").end());
    let answer = lb.ask(get("/events")).await;
    assert_eq!(all(&answer, "x-accel-buffering"), ["no"]);
}
