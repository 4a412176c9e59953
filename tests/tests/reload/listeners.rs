//! Listeners that come, go and change.

use lb_tests::client::{End, Exchange, ask, chat, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use tokio::net::TcpStream;

fn with(text: &str, listeners: &str) -> String {
    let lines = text.lines().map(|line| {
        if line.starts_with("listeners:") {
            format!("listeners: [{listeners}]")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

const DATA: &str = "{ name: data, address: \"127.0.0.1:0\" }";
const MORE: &str = "{ name: more, address: \"127.0.0.1:0\" }";

// [RELOAD-20] [RELOAD-21]
#[tokio::test]
async fn a_listener_comes_and_goes_and_the_other_one_does_not_notice() {
    let late = Signal::new();
    let provider = Provider::start(Script::stream().token("a").wait(&late).token("b").finish()).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&text).await;
    let mut kept = Exchange::begin(lb.data(), get("/v1/models")).await;
    kept.answer().await;
    lb.write(&with(&text, &format!("{MORE}, {DATA}")));
    assert_eq!(lb.reload().await.status(), 200);
    let more = lb.listening("more", 1).await;
    let mut stream = Exchange::begin(more, chat("chat", true)).await;
    stream.head().await;
    stream.until("\"a\"").await;
    lb.write(&with(&text, DATA));
    assert_eq!(lb.reload().await.status(), 200);
    lb.eventually("the listener to be closed", async |_| {
        TcpStream::connect(more).await.is_err()
    })
    .await;
    kept.again(get("/v1/models")).await;
    assert_eq!(kept.answer().await.status(), 200);
    late.fire();
    stream.until("[DONE]").await;
    assert_eq!(stream.piece().await, Err(End::Clean));
    assert!(
        stream.closed().await,
        "a connection that drains carries no further request"
    );
}

// [RELOAD-21]
#[tokio::test]
async fn a_listener_that_goes_cuts_what_is_open_at_the_drains_end_and_nothing_else() {
    let provider = Provider::start(Script::stream().token("a").stall()).await;
    let text = Setup::single(&provider).server("drain_timeout_ms: 200").text();
    let lb = Lb::with(&with(&text, &format!("{DATA}, {MORE}"))).await;
    let mut streams = Vec::new();
    for address in [lb.data(), lb.listening("more", 1).await] {
        let mut stream = Exchange::begin(address, chat("chat", true)).await;
        stream.head().await;
        stream.until("\"a\"").await;
        streams.push(stream);
    }
    lb.write(&with(&text, DATA));
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(streams[1].piece().await, Err(End::Cut));
    assert!(streams[0].nothing_yet());
    lb.eventually("one to be left", async |lb| {
        lb.sum("lb_downstream_connections", &[]).await == 1
    })
    .await;
}

// [RELOAD-22]
#[tokio::test]
async fn caps_and_rules_of_a_listener_apply_at_once_and_count_what_is_open() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&with(
        &text,
        &DATA.replace(" }", ", max_connections_per_source: 9 }"),
    ))
    .await;
    let mut open = Exchange::begin(lb.data(), get("/v1/models")).await;
    open.answer().await;
    let set = async |members: &str| {
        lb.write(&with(&text, &DATA.replace(" }", &format!(", {members} }}"))));
        assert_eq!(lb.reload().await.status(), 200);
    };
    set("max_connections_per_source: 1").await;
    assert!(
        Exchange::begin(lb.data(), get("/v1/models"))
            .await
            .try_head()
            .await
            .is_none()
    );
    set("allow_sources: [\"10.0.0.0/8\"]").await;
    assert!(
        Exchange::begin(lb.data(), get("/v1/models"))
            .await
            .try_head()
            .await
            .is_none()
    );
    set("max_body_bytes: 10").await;
    assert_eq!(lb.chat(false).await.status(), 413);
    open.again(chat("chat", false)).await;
    assert_eq!(
        open.answer().await.status(),
        200,
        "a connection keeps the rules it came under"
    );
}

// [RELOAD-24]
#[tokio::test]
async fn an_address_that_cannot_be_had_refuses_the_whole_reload() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&text).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let holder = std::net::TcpListener::bind(taken).unwrap();
    let wish = format!("{{ name: other, address: \"{taken}\" }}");
    lb.write(&with(&text, &format!("{wish}, {MORE}")));
    let answer = lb.reload().await;
    assert_eq!(answer.status(), 422);
    assert!(answer.text().contains(&taken.to_string()), "{}", answer.text());
    assert_eq!(ask(lb.data(), get("/v1/models")).await.status(), 200);
    drop(holder);
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(ask(taken, get("/v1/models")).await.status(), 200);
    // The same port on all addresses: both sockets are ours.
    let all = format!("{{ name: other, address: \"0.0.0.0:{}\" }}", taken.port());
    lb.write(&with(&format!("{text}auth: {{ required: false }}\n"), &all));
    let answer = lb.reload().await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(ask(taken, get("/v1/models")).await.status(), 200);
}
