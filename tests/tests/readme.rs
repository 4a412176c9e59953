//! Every command and every example of the README works.
//!
//! They are run as they stand, but for the ports, which are the test's own, and for `cargo run`, which would build what
//! is already built.

#![cfg(test)]

use std::path::Path;
use std::process::Stdio;

use lb_tests::client::{ask, chat};
use lb_tests::daemon::{Lb, command};
use lb_tests::provider::{Provider, Script};
use lb_tests::sdk::Sdk;
use tokio::process::Command;

const README: &str = include_str!("../../README.md");
const QUICKSTART: &str = include_str!("../../configs/quickstart.yaml");

/// The README's fenced blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let after = README.split(begin.as_str()).skip(1);
    after
        .map(|block| block.split("```").next().unwrap_or_default())
        .collect()
}

/// The commands of its console blocks.
fn commands() -> impl Iterator<Item = &'static str> {
    blocks("console")
        .into_iter()
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("$ "))
}

/// The quick start's configuration on the test's own ports.
async fn quickstart() -> (Provider, Lb) {
    let gpu = Provider::start(Script::streamed(&["Hello ", "back"])).await;
    let text = QUICKSTART
        .replace("127.0.0.1:8080", "127.0.0.1:0")
        .replace("127.0.0.1:8000", &gpu.address().to_string());
    let lb = Lb::with(&format!(
        "{text}\nadmin: {{ address: \"127.0.0.1:0\" }}\nlog: {{ format: json }}\n"
    ))
    .await;
    (gpu, lb)
}

#[test]
fn the_configuration_shown_is_the_quickstart_file() {
    let shown = blocks("yaml");
    let file: Vec<_> = QUICKSTART.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(shown.concat().trim(), file.join("\n").trim());
}

#[tokio::test]
async fn every_command_works() {
    let (_gpu, lb) = quickstart().await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    for line in commands() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            // CI is that command; the demo is held to its story by a test of its own.
            ["cargo", "xtask", verb, "--install"] => {
                let arguments = ["xtask", verb, "--help"];
                let help = Command::new(env!("CARGO"))
                    .args(arguments)
                    .current_dir(root)
                    .output()
                    .await
                    .unwrap();
                assert!(
                    String::from_utf8_lossy(&help.stdout).contains("--install"),
                    "{line}"
                );
            }
            ["cargo", "run", "--release", "--", "run", "-c", file] => {
                assert!(root.join(file).exists(), "{line}");
            }
            ["cargo", "run", "--release", "--", ref arguments @ ..] => {
                let run = command([])
                    .args(arguments)
                    .current_dir(root)
                    .output()
                    .await
                    .unwrap();
                assert!(
                    run.status.success(),
                    "{line}: {}",
                    String::from_utf8_lossy(&run.stderr)
                );
            }
            ["curl", url] => {
                let url = url
                    .replace("127.0.0.1:8080", &lb.data().to_string())
                    .replace("127.0.0.1:9901", &lb.admin().to_string());
                let curl = Command::new("curl")
                    .args(["-s", "--fail", &url])
                    .stdin(Stdio::null())
                    .output()
                    .await;
                let curl = curl.expect("curl is installed");
                assert!(curl.status.success() && !curl.stdout.is_empty(), "{line}");
            }
            _ => panic!("no test knows how to run `{line}`"),
        }
    }
    let ci = std::fs::read_to_string(root.join(".ci/run")).unwrap();
    assert!(
        ci.contains("cargo xtask test --install"),
        "CI runs the README's test command"
    );
}

#[tokio::test]
async fn the_quickstart_answers_through_the_gpu() {
    let (gpu, lb) = quickstart().await;
    let answer = ask(lb.data(), chat("llama-70b", true)).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(
        gpu.request(0).await.json()["model"],
        "meta-llama/Llama-3.3-70B-Instruct"
    );
}

#[tokio::test]
async fn the_python_example_works() {
    let Some(sdk) = Sdk::python() else { return };
    let (gpu, lb) = quickstart().await;
    let example = blocks("python")
        .concat()
        .replace("127.0.0.1:8080", &lb.data().to_string());
    let program = format!("from openai import OpenAI\n{example}");
    let run = Command::new(sdk.interpreter())
        .args(["-c", &program])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(gpu.request(0).await.json()["stream"], true);
}
