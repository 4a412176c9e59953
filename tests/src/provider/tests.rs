use super::{Provider, Refusing, Script, Signal};
use crate::client::{End, Exchange, ask, chat, get};

#[tokio::test]
async fn a_request_is_remembered_as_it_was_sent() {
    let provider = Provider::start(Script::completion("hello")).await;
    let answer = ask(provider.address(), chat("chat", false)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
    let request = provider.request(0).await;
    assert_eq!(request.line(), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("Host"), Some("lb.test"));
    assert_eq!(request.json()["model"], "chat");
}

#[tokio::test]
async fn each_request_takes_the_next_script_and_then_the_default_one() {
    let provider = Provider::start(Script::error(500)).await;
    provider.next(Script::error(503));
    let mut exchange = Exchange::begin(provider.address(), get("/")).await;
    assert_eq!(exchange.answer().await.status(), 503);
    exchange.again(get("/")).await;
    assert_eq!(exchange.answer().await.status(), 500);
    assert_eq!(provider.connections().len(), 1);
}

#[tokio::test]
async fn a_clean_end_and_a_cut_look_different_to_the_client() {
    let provider = Provider::start(Script::streamed(&["a"])).await;
    provider.next(Script::stream().token("a").reset());
    provider.next(Script::stream().token("a").close());
    provider.next(
        Script::head(200, &[("content-length", "10")])
            .bytes("short")
            .close(),
    );
    let ends = [End::Cut, End::Cut, End::Cut, End::Clean];
    for end in ends {
        assert_eq!(ask(provider.address(), get("/")).await.end, end);
    }
}

#[tokio::test]
async fn a_step_waits_for_its_signal_and_the_leaving_of_the_client_is_seen_meanwhile() {
    let signal = Signal::new();
    let provider = Provider::start(Script::stream().token("one").wait(&signal).token("two").stall()).await;
    let mut exchange = Exchange::begin(provider.address(), get("/")).await;
    exchange.head().await;
    let seen = exchange.until("one").await;
    assert!(!seen.windows(3).any(|part| part == b"two"));
    signal.fire();
    exchange.until("two").await;
    assert_eq!(provider.open(), 1);
    drop(exchange);
    provider.left(0).await;
    assert_eq!(provider.open(), 0);
}

#[tokio::test]
async fn a_killed_or_refusing_provider_takes_no_connection() {
    let mut provider = Provider::start(Script::silent().stall()).await;
    let mut waiting = Exchange::begin(provider.address(), get("/")).await;
    provider.request(0).await;
    provider.kill().await;
    assert!(waiting.closed().await);
    let refusing = Refusing::new();
    let refusing = refusing.url();
    let refusing = refusing.trim_start_matches("http://").trim_end_matches("/v1");
    for address in [provider.address(), refusing.parse().unwrap()] {
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }
}
