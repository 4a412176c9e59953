//! What a reload is asked by, and what it reads.

use lb_tests::client::{Exchange, ask, get, post};
use lb_tests::daemon::{Lb, command};
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use rustix::process::Signal as Unix;

// [RELOAD-7]
#[tokio::test]
async fn only_who_has_the_token_may_ask_for_a_reload_and_only_by_post() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let foreign = "POST /api/v1/reload HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(ask(lb.admin(), foreign).await.status(), 403);
    assert_eq!(ask(lb.admin(), get("/api/v1/reload")).await.status(), 405);
    let token = lb.folder().write("token", "secret\n");
    let text = Setup::single(&provider).text();
    let admin = format!("admin: {{ token_file: {}, ", token.display());
    lb.write(&text.replace("admin: {", &admin));
    assert_eq!(lb.reload().await.status(), 200);
    // From now on.
    assert_eq!(lb.reload().await.status(), 401);
    let with = |token: &str| {
        format!(
            "POST /api/v1/reload HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
        )
    };
    lb.folder().write("token", "other\n");
    assert_eq!(ask(lb.admin(), with("secret")).await.status(), 200);
    assert_eq!(ask(lb.admin(), with("secret")).await.status(), 401);
    assert_eq!(ask(lb.admin(), with("other")).await.status(), 200);
}

// [RELOAD-8]
#[tokio::test]
async fn lb_reload_says_what_came_of_it() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&text).await;
    let reload = async |lb: &Lb| {
        let mut command = command(["reload", "-c"]);
        command.arg(lb.folder().path().join("lb.yaml"));
        command.env("RUNTIME_DIRECTORY", lb.folder().path());
        let output = command.output().await.expect("the binary starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("text"))
    };
    assert_eq!(reload(&lb).await, (Some(0), "reloaded\n".to_owned()));
    lb.write(&text.replace("targets:", "tragets:"));
    let (code, said) = reload(&lb).await;
    assert_eq!(code, Some(78), "{said}");
    assert!(
        said.contains("tragets") && said.contains("did you mean"),
        "{said}"
    );
    assert_eq!(lb.chat(false).await.status(), 200);
    let folder = lb_tests::daemon::Folder::new();
    let mut nobody = command(["reload", "-c", "/nonexistent/lb.yaml"]);
    let output = nobody
        .env("RUNTIME_DIRECTORY", folder.path())
        .output()
        .await
        .expect("it starts");
    assert_eq!(output.status.code(), Some(69));
}

// [RELOAD-9]
#[tokio::test]
async fn keys_and_headers_are_those_of_the_file_as_it_is_now() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&text).await;
    lb.chat(false).await;
    assert_eq!(
        provider.request(0).await.header("authorization"),
        Some("Bearer key-of-gpu")
    );
    let key = lb.folder().write("key", "first\n");
    let text = text.replace("api_key: key-of-gpu", &format!("api_key_file: {}", key.display()));
    lb.write(&text);
    assert_eq!(lb.reload().await.status(), 200);
    lb.chat(false).await;
    assert_eq!(
        provider.request(1).await.header("authorization"),
        Some("Bearer first")
    );
    // The file of a key is watched like the configuration's.
    let reloads = lb.count(&["\"reloaded\""]);
    lb.folder().write("key", "second\n");
    lb.eventually("a reload", async |lb| lb.count(&["\"reloaded\""]) > reloads)
        .await;
    lb.chat(false).await;
    assert_eq!(
        provider.request(2).await.header("authorization"),
        Some("Bearer second")
    );
    // And so is what must not be read: the key of clients.
    let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let digest = lb.folder().write("client", digest);
    lb.write(&format!(
        "{text}auth: {{ required: true, keys: [{{ name: a, sha256_file: {} }}] }}\n",
        digest.display()
    ));
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(lb.chat(false).await.status(), 401);
    let with = post(
        "/v1/chat/completions",
        "authorization: Bearer secret\r\n",
        lb_tests::client::chat_body("chat", false),
    );
    assert_eq!(lb.ask(with).await.status(), 200);
}

// [RELOAD-30]
#[tokio::test]
async fn connections_to_an_endpoint_that_stays_are_used_on_and_idle_ones_to_one_that_goes_are_closed() {
    let (stays, goes) = (
        Provider::start(Script::completion("ok")).await,
        Provider::start(Script::completion("ok")).await,
    );
    let late = Signal::new();
    let setup = Setup::pair(&stays, &goes).provider("connections: { idle_timeout_ms: 60000 }");
    let lb = Lb::start(&setup).await;
    lb.chat(false).await;
    stays.next(Script::error(503));
    assert_eq!(lb.chat(false).await.status(), 200);
    // The one that goes has an idle connection and a stream.
    stays.next(Script::error(503));
    goes.next(Script::stream().token("a").wait(&late).token("b").finish());
    let mut stream = lb.begin().await;
    stream.head().await;
    stream.until("\"a\"").await;
    stays.next(Script::error(503));
    assert_eq!(lb.chat(false).await.status(), 200);
    lb.chat(false).await;
    assert_eq!((stays.open(), goes.open()), (1, 2));
    let before = stays.connections().len();
    let other = Provider::start(Script::completion("ok")).await;
    let text = setup.text().replace(&goes.url(), &other.url());
    lb.write(&text);
    assert_eq!(lb.reload().await.status(), 200);
    lb.eventually("the idle connection to be closed", async |_| goes.open() == 1)
        .await;
    late.fire();
    stream.until("[DONE]").await;
    assert_eq!(stream.piece().await, Err(lb_tests::client::End::Clean));
    lb.eventually("the stream's connection not to be kept", async |_| {
        goes.open() == 0
    })
    .await;
    lb.chat(false).await;
    assert_eq!(stays.connections().len(), before, "the idle one was used");
    stays.next(Script::error(503));
    lb.chat(false).await;
    assert_eq!(other.requests().len(), 1);
}

// [ADMIN-9]
#[tokio::test]
async fn usr1_and_usr2_are_taken_and_the_latter_is_told_of_once() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    for _ in 0..2 {
        lb.signal(Unix::USR2);
        lb.signal(Unix::USR1);
        lb.eventually("USR1 to be told", async |lb| lb.count(&["USR1"]) > 0)
            .await;
    }
    lb.signal(Unix::HUP);
    lb.logged(&["\"reloaded\""]).await;
    assert_eq!(lb.count(&["USR2"]), 1);
    assert_eq!(lb.chat(false).await.status(), 200);
}

// [RELOAD-23]
#[tokio::test]
async fn the_admin_listener_moves() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&text).await;
    let mut kept = Exchange::begin(lb.admin(), get("/livez")).await;
    assert_eq!(kept.answer().await.status(), 200);
    let port = std::net::TcpListener::bind("127.0.0.2:0")
        .unwrap()
        .local_addr()
        .unwrap();
    lb.write(&text.replace(
        "admin: { address: \"127.0.0.1:0\"",
        &format!("admin: {{ address: \"{port}\""),
    ));
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(ask(port, get("/readyz")).await.status(), 200);
    lb.eventually("the old address to be left", async |lb| {
        tokio::net::TcpStream::connect(lb.admin()).await.is_err()
    })
    .await;
    kept.again(get("/livez")).await;
    assert_eq!(kept.answer().await.status(), 200, "who is connected is answered");
}
