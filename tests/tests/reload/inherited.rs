//! Sockets that the service manager hands over.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;

use lb_tests::client::{ask, get};
use lb_tests::daemon::{Folder, Lb, command};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use tokio::process::Command;

/// `lb run` with this socket as the service manager hands it over, under this name.
fn run(socket: &TcpListener, name: &str) -> Command {
    let mut command = command(["run"]);
    // The first descriptor is 3 for systemd; a test can only give away the standard ones.
    command
        .stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())))
        .env("LISTEN_FDS", "1")
        .env("LISTEN_FDS_FIRST_FD", "0")
        .env("LISTEN_FDNAMES", name);
    command
}

fn text(provider: &Provider) -> String {
    let text = Setup::single(provider).server("workers: 2").text();
    format!(
        "{}auth: {{ required: false }}\n",
        text.replacen("127.0.0.1:0", "fd:web", 1)
    )
}

// [RELOAD-40]
#[tokio::test]
async fn a_socket_of_the_service_managers_is_one_for_all_workers_and_survives_reloads() {
    let provider = Provider::start(Script::completion("ok")).await;
    let socket = TcpListener::bind("[::1]:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = Arc::new(Folder::new());
    folder.write("lb.yaml", &text(&provider));
    // Before lb is there the kernel keeps who comes.
    let early = tokio::spawn(async move { ask(address, get("/v1/models")).await });
    let lb = Lb::spawn(folder, &mut run(&socket, "web")).await;
    assert_eq!(lb.data(), address);
    assert_eq!(early.await.unwrap().status(), 200);
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(ask(address, get("/v1/models")).await.status(), 200);
    // Gone and back.
    lb.write(&Setup::single(&provider).server("workers: 2").text());
    assert_eq!(lb.reload().await.status(), 200);
    lb.write(&text(&provider));
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(ask(address, get("/v1/models")).await.status(), 200);
}

// [RELOAD-5] [RELOAD-40]
#[tokio::test]
async fn a_configuration_that_cannot_be_used_does_not_take_a_socket_with_it() {
    let provider = Provider::start(Script::completion("ok")).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = Arc::new(Folder::new());
    let without = Setup::single(&provider).server("workers: 2").text();
    folder.write("lb.yaml", &without);
    let lb = Lb::spawn(folder, &mut run(&socket, "web")).await;
    // Both that nobody can have the admin port, and that a second listener lacks its socket, come after the first has
    // got its own.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let admin = "admin: { address: \"127.0.0.1:0\" }";
    let busy = text(&provider).replacen(admin, &format!("admin: {{ address: \"127.0.0.1:{port}\" }}"), 1);
    let lacking = text(&provider).replacen(
        "listeners: [",
        "listeners: [{ name: other, address: \"fd:other\" }, ",
        1,
    );
    let lacking_last = text(&provider).replacen(" }]", " }, { name: other, address: \"fd:other\" }]", 1);
    for broken in [busy, lacking, lacking_last] {
        lb.write(&broken);
        assert_eq!(lb.reload().await.status(), 422, "{broken}");
    }
    lb.write(&text(&provider));
    let answer = lb.reload().await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(ask(address, get("/v1/models")).await.status(), 200);
}

// [RELOAD-40]
#[tokio::test]
async fn a_socket_that_was_not_handed_over_ends_the_start_and_says_which_there_are() {
    let provider = Provider::start(Script::completion("ok")).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new();
    let file = folder.write("lb.yaml", &text(&provider));
    let output = run(&socket, "other")
        .arg("-c")
        .arg(file)
        .output()
        .await
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(69), "{said}");
    for words in ["`web`", "other", "FileDescriptorName=web"] {
        assert!(said.contains(words), "{words} in {said}");
    }
}
