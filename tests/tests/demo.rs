//! `lb demo`: the story is told as promised, on a real clock.

#![cfg(test)]

use std::process::Stdio;

use lb_tests::daemon::command;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A demo of this length, its first two lines read.
async fn demo(length: &str) -> (Child, [String; 2], Lines<BufReader<ChildStdout>>) {
    let mut child = command(["demo", "--for", length])
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next = async || lines.next_line().await.expect("readable").expect("an opening");
    let opening = [next().await, next().await];
    (child, opening, lines)
}

/// The number behind `key=` in a line.
fn field(line: &str, key: &str) -> f64 {
    let value = line
        .split(key)
        .nth(1)
        .unwrap_or_else(|| panic!("no {key} in {line}"));
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    value
        .split(|c| !digits(c))
        .next()
        .unwrap_or_default()
        .parse()
        .expect("a number")
}

// [DEMO-1] [DEMO-2] [DEMO-3] [DEMO-5]
#[tokio::test]
async fn the_share_falls_settles_climbs_and_the_dead_are_answered_for() {
    let (mut child, opening, mut lines) = demo("75s").await;
    assert!(
        opening[0].contains("dwell 1 s") && opening[0].contains("budget 0.5 s"),
        "{}",
        opening[0]
    );
    let mut seconds = Vec::new();
    let mut last = String::new();
    let mut noticed = false;
    while let Some(line) = lines.next_line().await.unwrap() {
        assert!(!line.contains('\u{1b}'), "no escape codes: {line:?}");
        if line.starts_with("-- gpu is out") {
            assert!(field(&line, "is out ") < 1000.0, "{line}");
            noticed = true;
        }
        if line.starts_with("t=") {
            seconds.push(line.clone());
        }
        last = line;
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert!(noticed, "the death of the preferred provider is told");
    let story = seconds.join("\n");
    assert!((74..=75).contains(&seconds.len()), "one line a second:\n{story}");

    let shares: Vec<f64> = seconds.iter().map(|line| field(line, "share=")).collect();
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / f64::from(u32::try_from(shares.len()).unwrap());
    assert!(
        shares[..8].iter().all(|&share| share > 0.99),
        "healthy: all to the preferred provider\n{story}"
    );
    let settled = mean(&shares[17..36]);
    assert!(
        (0.3..0.8).contains(&settled),
        "saturated: about what it can serve, not {settled}\n{story}"
    );
    assert!(
        shares[45..56].iter().any(|&share| share > 0.95),
        "capacity is back: the share climbs\n{story}"
    );
    let dead = &seconds[58..64];
    assert!(
        dead.iter()
            .all(|line| line.contains("gpu=ejected") || line.contains("gpu=half_open")),
        "{story}"
    );
    assert!(
        dead.iter().all(|line| field(line, "alternates=") > 99.0),
        "the dead are answered for\n{story}"
    );
    assert!(
        seconds.last().unwrap().contains("gpu=healthy"),
        "and come back\n{story}"
    );
    assert!(
        last.starts_with("total requests=") && field(&last, "failed=") < 1.0,
        "{last}"
    );
    assert!(
        field(&last, "answered=") > 0.98 * field(&last, "requests="),
        "{last}"
    );
}

// [DEMO-1]
#[tokio::test]
async fn its_curl_line_works_meanwhile() {
    let (mut child, opening, _lines) = demo("30s").await;
    let curl = opening[1].split_once(": ").expect("a command").1;
    assert!(curl.starts_with("curl "), "{curl}");
    let run = Command::new("sh")
        .args(["-c", curl])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let answer = String::from_utf8_lossy(&run.stdout);
    assert!(
        answer.starts_with("data: {") && answer.ends_with("data: [DONE]\n\n"),
        "{answer}"
    );
    child.kill().await.unwrap();
}
