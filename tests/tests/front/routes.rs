//! Which requests go where, and what becomes of their target and fields on the way.

use lb_tests::client::{chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;

/// lb with a model's provider, `app` beside it, and these routes.
async fn lb(model: &Provider, app: &str, routes: &str) -> Lb {
    let setup = Setup::single(model).at("app", &[app]);
    Lb::start(&setup.section(&format!("routes: [{routes}]"))).await
}

fn url(provider: &Provider) -> String {
    format!("http://{}/base?k=1", provider.address())
}

fn request(line: &str, host: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n")
}

// [ROUTE-12]
#[tokio::test]
async fn the_first_route_that_fits_takes_a_request_and_none_is_404() {
    let (model, app) = (
        Provider::start(Script::completion("ok")).await,
        Provider::start(Script::json(200, &[], &"app".into())).await,
    );
    let lb = lb(
        &model,
        &url(&app),
        "{ match: { host: app.test, headers: { x-team: a } }, to: { provider: app } }, { match: { path_prefix: /v1/ }, to: models }",
    )
    .await;
    let asked = lb
        .ask(request("GET /v1/deep?a=1", "APP.test:80", "x-team: a\r\n"))
        .await;
    assert_eq!((asked.status(), asked.text().as_str()), (200, "\"app\""));
    assert_eq!(app.request(0).await.line(), ("GET", "/v1/deep?a=1&k=1"));
    assert_eq!(lb.chat(false).await.status(), 200);
    assert_eq!(
        lb.ask(request("GET /deep", "app.test", "x-team: b\r\n"))
            .await
            .code(),
        "not_found"
    );
    assert_eq!((model.requests().len(), app.requests().len()), (1, 1));
}

// [ROUTE-13]
#[tokio::test]
async fn a_route_rewrites_its_prefix_and_changes_fields_both_ways() {
    let (model, app) = (
        Provider::start(Script::completion("ok")).await,
        Provider::start(Script::json(
            200,
            &[("server", "inside"), ("x-kept", "1")],
            &"app".into(),
        ))
        .await,
    );
    let lb = lb(
        &model,
        &url(&app),
        "{ match: { path_prefix: /app/ }, to: { provider: app }, rewrite_prefix: /inner, request_headers: { set: { x-tenant: t, \
         x-forwarded-proto: https }, remove: [x-secret, x-forwarded-for] }, response_headers: { set: { x-served: lb }, remove: [server] } }, \
         { match: { path_prefix: /openai }, to: models, rewrite_prefix: /v1/, default_model: chat }",
    )
    .await;
    let headers = "x-secret: s\r\nx-tenant: forged\r\nx-other: o\r\n";
    let answer = lb.ask(request("GET /app/x/y?q", "a", headers)).await;
    let sent = app.request(0).await;
    assert_eq!(sent.line().1, "/inner/x/y?q&k=1");
    assert_eq!(
        (sent.all("x-tenant"), sent.all("x-other")),
        (vec!["t"], vec!["o"])
    );
    assert_eq!(sent.all("x-forwarded-proto"), ["https"]);
    assert!(sent.header("x-secret").is_none() && sent.header("x-forwarded-for").is_none());
    assert_eq!(answer.head.all("x-served"), ["lb"]);
    assert!(answer.head.header("server").is_none() && answer.head.header("x-kept") == Some("1"));
    assert_eq!(lb.ask(request("GET /app", "a", "")).await.status(), 200);
    assert_eq!(app.request(1).await.line().1, "/inner?k=1");

    assert_eq!(
        lb.ask(get("/openai/models")).await.json()["data"][0]["id"],
        "chat"
    );
    let answer = lb
        .ask(post("/openai/chat/completions", "", "{\"messages\":[]}"))
        .await;
    assert_eq!(answer.status(), 200);
    let sent = model.request(0).await;
    assert_eq!(
        (sent.line().1, &sent.body[..]),
        ("/v1/chat/completions", &b"{\"messages\":[]}"[..])
    );
}

// [ROUTE-13]
#[tokio::test]
async fn lbs_own_refusals_have_the_fields_of_their_route() {
    let model = Provider::start(Script::completion("ok")).await;
    let cors = "response_headers: { set: { access-control-allow-origin: \"*\" }, remove: [content-type] }";
    let lb = lb(
        &model,
        &url(&model),
        &format!("{{ match: {{ path_prefix: /v1/ }}, to: models, {cors} }}, {{ match: {{ path_prefix: /app }}, to: {{ provider: app }} }}"),
    )
    .await;
    let allowed = async |request: Vec<u8>, status: u16| {
        let answer = lb.ask(request).await;
        assert_eq!(answer.status(), status, "{}", answer.text());
        assert!(answer.head.header("x-request-id").is_some());
        answer.head.header("access-control-allow-origin") == Some("*")
            && answer.head.header("content-type").is_none()
    };
    let chat = "/v1/chat/completions";
    assert!(allowed(post(chat, "", chat_body("nobody", false)), 404).await);
    assert!(allowed(post(chat, "", "no JSON"), 400).await);
    assert!(allowed(post(chat, "content-encoding: gzip\r\n", "x"), 415).await);
    assert!(allowed(get("/v1/models/nobody"), 404).await);
    assert!(!allowed(get("/elsewhere"), 404).await, "it has no route");
    assert!(!allowed(get("/v1/../x"), 400).await, "its route is not known");
}

// [ROUTE-14] [ROUTE-15]
#[tokio::test]
async fn any_method_and_body_goes_to_a_provider_as_it_is() {
    let app = Provider::start(Script::json(200, &[], &"app".into())).await;
    let lb = lb(&app, &url(&app), "{ match: {}, to: { provider: app } }").await;
    for (number, method) in ["PROPFIND", "DELETE", "PUT", "POST", "GET", "BREW"]
        .into_iter()
        .enumerate()
    {
        let body = format!("\0\u{1}{{\"model\":\"{method}\",");
        let head = format!(
            "{method} /any%2Fpath HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        assert_eq!(
            lb.ask([head.as_bytes(), body.as_bytes()].concat()).await.status(),
            200,
            "{method}"
        );
        let sent = app.request(number).await;
        assert_eq!(
            (sent.line(), &sent.body[..]),
            ((method, "/any%2Fpath?k=1"), body.as_bytes())
        );
        assert_eq!(sent.all("content-encoding"), ["gzip"]);
        assert_eq!(sent.all("authorization"), ["Bearer key-of-app"]);
    }
}

/// A connection that dies when it has been sent a request: nobody knows whether it was acted upon.
fn unanswered() -> Script {
    Script::silent().reset()
}

// field fault C3
// [ROUTE-15]
#[tokio::test]
async fn straight_to_a_provider_what_is_not_idempotent_is_sent_once() {
    let (first, second) = (
        Provider::start(unanswered()).await,
        Provider::start(Script::json(200, &[], &"second".into())).await,
    );
    let setup = Setup::new()
        .at("app", &[&first.url(), &second.url()])
        .provider("health: { enabled: false }")
        .section("routes: [{ match: {}, to: { provider: app } }]");
    let lb = Lb::start(&setup).await;
    for method in ["POST", "PATCH"] {
        let (before, mut seen) = (first.requests().len(), second.requests().len());
        // Until the endpoint that does not answer has been tried.
        while first.requests().len() == before {
            let act = request(&format!("{method} /act"), "a", "content-length: 0\r\n");
            let answer = lb.ask(act).await;
            let dead = first.requests().len() > before;
            let (status, sent) = if dead { (502, 0) } else { (200, 1) };
            assert_eq!(answer.status(), status, "{method}: {}", answer.text());
            assert_eq!(second.requests().len(), seen + sent, "{method}");
            seen += sent;
        }
        assert_eq!(first.requests().len(), before + 1, "{method}");
    }
}

// field fault C3
// [ROUTE-15] [TABLE-6]
#[tokio::test]
async fn a_kept_connection_that_dies_under_a_request_is_replaced_where_the_request_may_be_repeated() {
    let (provider, app) = (
        Provider::start(Script::completion("ok")).await,
        Provider::start(Script::json(200, &[], &"app".into())).await,
    );
    let lb = lb(
        &provider,
        &url(&app),
        "{ match: { path_prefix: /act }, to: { provider: app } }, { match: {}, to: models }",
    )
    .await;
    for (method, repeated) in [
        ("POST", false),
        ("PATCH", false),
        ("GET", true),
        ("PUT", true),
        ("DELETE", true),
    ] {
        let act = request(&format!("{method} /act"), "a", "content-length: 0\r\n");
        assert_eq!(lb.ask(&act).await.status(), 200, "keeps a connection");
        let before = app.requests().len();
        app.next(unanswered());
        let status = lb.ask(&act).await.status();
        let sent = app.requests().len() - before;
        assert_eq!(
            (status, sent),
            if repeated { (200, 2) } else { (502, 1) },
            "{method}"
        );
    }
    // These compute and nothing else, unless they are stored or run in the background.
    for (path, more, repeated) in [
        ("/v1/chat/completions", "", true),
        ("/v1/completions", "", true),
        ("/v1/responses", r#","store":false"#, true),
        ("/v1/responses", r#","store":true"#, false),
        ("/v1/responses", r#","store":false,"background":true"#, false),
        ("/v1/files", "", false),
    ] {
        let ask = post(path, "", format!(r#"{{"model":"chat"{more}}}"#));
        let answer = lb.ask(&ask).await;
        assert_eq!(
            answer.status(),
            200,
            "{path} keeps a connection: {}",
            answer.text()
        );
        let before = provider.requests().len();
        provider.next(unanswered());
        let status = lb.ask(&ask).await.status();
        let sent = provider.requests().len() - before;
        assert_eq!(
            (status, sent),
            if repeated { (200, 2) } else { (502, 1) },
            "{path} {more}"
        );
    }
    let health = lb.endpoint("gpu", 0).await;
    assert_eq!(health["state"], "healthy");
}

// [ROUTE-14]
#[tokio::test]
async fn a_stream_of_another_service_is_passed_on_and_not_judged() {
    let app = Provider::start(Script::stream().data("anything").end()).await;
    let lb = lb(&app, &url(&app), "{ match: {}, to: { provider: app } }").await;
    let answer = lb.ask(get("/events")).await;
    assert_eq!(answer.text(), "data: anything\n\n");
    assert_eq!(lb.sum("lb_stream_incomplete_total", &[]).await, 0);
    assert_eq!(
        lb.sum("lb_requests_total", &["model=\"_direct\"", "outcome=\"ok\""])
            .await,
        1
    );
}

// [ROUTE-16]
#[tokio::test]
async fn a_provider_that_is_not_there_is_502_and_no_loop_is_made() {
    let (model, refusing) = (Provider::start(Script::completion("ok")).await, Refusing::new());
    let lb = lb(
        &model,
        &refusing.url(),
        "{ match: { path_prefix: /app }, to: { provider: app } }, { match: { path_prefix: /v1/ }, to: models }",
    )
    .await;
    assert_eq!(lb.ask(get("/app")).await.status(), 502);
    // A path that leads out of its prefix is nobody's.
    for path in [
        "/app/../v1/models",
        "/app/%2e%2E/v1/models",
        "/app/.%2e",
        "/app/..%2fadmin",
        "/app/..%5cadmin",
        "/app/x%2F%2e.%2Fadmin",
        "/app/x%5C..",
        "/app/..;/admin",
        "/app/..%3Bx=1/admin",
    ] {
        assert_eq!(lb.ask(get(path)).await.code(), "bad_request", "{path}");
    }
    for path in ["/app/..x/...", "/app/a%2Fb%2f..c", "/app/a%5Cb", "/app/a..;b"] {
        assert_eq!(lb.ask(get(path)).await.status(), 502, "{path}");
    }
    lb.ask(post("/v1/chat/completions", "", chat_body("chat", false)))
        .await;
    let via = model.request(0).await;
    let via = via.header("via").expect("lb says where it was");
    assert!(via.starts_with("1.1 lb-"), "{via}");
    let again = post(
        "/v1/chat/completions",
        &format!("via: 1.0 x, {via}\r\n"),
        chat_body("chat", false),
    );
    let refused = lb.ask(again).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (508, "loop_detected")
    );
    let other = "via: 1.1 lb-0000000000000000\r\n";
    assert_eq!(
        lb.ask(post("/v1/chat/completions", other, chat_body("chat", false)))
            .await
            .status(),
        200
    );
    assert_eq!(
        model.request(1).await.all("via"),
        [format!("1.1 lb-0000000000000000, {via}")]
    );
}

// [ROUTE-16]
#[tokio::test]
async fn without_via_nothing_is_said_and_what_came_passes() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider).server("via: false")).await;
    lb.ask(post(
        "/v1/chat/completions",
        "via: 1.1 x\r\n",
        chat_body("chat", false),
    ))
    .await;
    assert_eq!(provider.request(0).await.all("via"), ["1.1 x"]);
}

// HTTP checklist 26
// [HTTP-50]
#[tokio::test]
async fn max_forwards_is_counted_down_for_options_and_ends_at_lb() {
    let app = Provider::start(Script::json(200, &[], &"app".into())).await;
    let lb = lb(&app, &url(&app), "{ match: {}, to: { provider: app } }").await;
    let options = |left| request("OPTIONS /x", "a", &format!("max-forwards: {left}\r\n"));
    assert_eq!(lb.ask(options(0)).await.status(), 204);
    assert_eq!(lb.ask(options(2)).await.status(), 200);
    assert_eq!(app.request(0).await.all("max-forwards"), ["1"]);
    assert_eq!(app.requests().len(), 1);
}
