//! Each row of the outcome table through the real proxy: what one ending of an attempt is to every mechanism.
//!
//! The preferred provider's first endpoint is asked first, and ends its attempt as the row says. Everything else in a
//! scene answers as it should, so that who is asked next tells what the request did. What the mechanisms counted is read
//! from `/api/v1/state` and `/metrics`, once without a share controller and once with one. The same table over every
//! combination of circumstances is in lb's unit tests.

mod rows;
mod scene;

use lb_tests::provider::Script;
use rows::{ROWS_OF_ANSWERS, ROWS_OF_CONNECTIONS, ROWS_OF_TIME};
use scene::{Expected, Others, observe};

/// A row of the table.
struct Row {
    /// As in the table.
    name: &'static str,
    /// How the attempt at the first endpoint ends.
    ending: Ending,
    ask: Ask,
    /// Settings of the model's `fallback`, of every provider, and sections, beside the scene's own.
    fallback: &'static [&'static str],
    provider: &'static [&'static str],
    section: &'static [&'static str],
    health: Verdict,
    breaker: Verdict,
    cooldown: Cooling,
    retry: Retry,
    /// Whether the alternate is asked where the provider has no other endpoint.
    fails_over: bool,
    /// What the controller of a stream counts.
    share: Option<&'static str>,
}

/// How an attempt ends.
enum Ending {
    /// The endpoint says this.
    Says(fn() -> Script),
    /// It says this on a connection that has carried a request before, within 250 ms of the request or later.
    SaysOnReused { at_once: bool, script: fn() -> Script },
    /// It answered another request with 429, so that it cools and is half open, and says this then.
    SaysAfterCooling(fn() -> Script),
    /// Nobody listens.
    Refuses,
    /// What listens speaks no TLS.
    NoTls,
    /// Nobody knows its name.
    Unknown,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// A whole answer; a stream where a controller is to count it.
    Either,
    Stream,
    /// A response that is stored, which may not be repeated once it was sent.
    Stored,
    /// As `Either`, and the client leaves as soon as the endpoint has the request.
    Left,
    /// A stream whose client leaves after its first token.
    LeftStreaming,
}

/// What an endpoint's health, or a breaker, has counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Success,
    Failure,
    Neutral,
    /// The commit was a success, and what came after it a failure.
    Both,
}

/// What has become of the cooldown of the model at the endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cooling {
    Starts,
    /// For at least so many milliseconds.
    StartsFor(u64),
    Left,
    Cleared,
}

/// Where the same provider is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Retry {
    /// At its other endpoint, before another target is.
    First,
    /// At its other endpoint, where there is no other target.
    IfAlone,
    /// At the same endpoint at once, which costs nothing.
    Fresh,
    Never,
}

/// Rows as they are usually asked for.
const ROW: Row = Row {
    name: "",
    ending: Ending::Refuses,
    ask: Ask::Either,
    fallback: &[],
    provider: &[],
    section: &[],
    health: Verdict::Neutral,
    breaker: Verdict::Neutral,
    cooldown: Cooling::Left,
    retry: Retry::Never,
    fails_over: false,
    share: Some("unknown"),
};

/// What the table says of the four scenes in which a row can be seen.
async fn holds(row: &Row) {
    without_controller(row, [true, true]).await;
    without_controller(row, [true, false]).await;
    without_controller(row, [false, true]).await;
    with_controller(row).await;
}

/// The provider has another endpoint or not, and there is an alternate or not.
async fn without_controller(row: &Row, [replica, alternate]: [bool; 2]) {
    let others = Others { replica, alternate };
    let retried = match row.retry {
        Retry::First => replica,
        Retry::IfAlone => replica && !alternate,
        Retry::Fresh | Retry::Never => false,
    };
    let over = alternate && row.fails_over && !retried;
    let seen = observe(row, others, false).await;
    let expected = Expected {
        health: row.health,
        breaker: row.breaker,
        cooldown: row.cooldown,
        share: None,
    };
    assert_eq!(
        seen.others,
        [usize::from(retried), usize::from(over)],
        "{}, {others:?}: who was asked",
        row.name
    );
    assert_eq!(
        (seen.retries, seen.failovers),
        (u64::from(retried), u64::from(over)),
        "{}, {others:?}: retries and failovers",
        row.name
    );
    seen.is(row, &expected);
}

/// What a controller counts as a breach is nothing to the others.
async fn with_controller(row: &Row) {
    let others = Others {
        replica: false,
        alternate: true,
    };
    let is_breach = row.share == Some("breach");
    let unless_breach = |verdict| if is_breach { Verdict::Neutral } else { verdict };
    let expected = Expected {
        health: unless_breach(row.health),
        breaker: unless_breach(row.breaker),
        cooldown: if is_breach { Cooling::Left } else { row.cooldown },
        share: row.share,
    };
    let seen = observe(row, others, true).await;
    assert_eq!(
        seen.others,
        [0, usize::from(row.fails_over)],
        "{}: with a share",
        row.name
    );
    seen.is(row, &expected);
}

// [OUTCOME-1] [OUTCOME-2] [OUTCOME-4] [BREAKER-9] [RETRY-1] [RETRY-2] field faults K3, R3
#[tokio::test]
async fn what_answers_are_to_every_mechanism() {
    for row in ROWS_OF_ANSWERS {
        holds(row).await;
    }
}

// [OUTCOME-1] [OUTCOME-6] [TABLE-6] [RETRY-1]
#[tokio::test]
async fn what_broken_connections_are_to_every_mechanism() {
    for row in ROWS_OF_CONNECTIONS {
        holds(row).await;
    }
}

// [OUTCOME-1] [OUTCOME-2] [OUTCOME-3] [BREAKER-9] [RETRY-3]
#[tokio::test]
async fn what_silence_deadlines_and_leaving_clients_are_to_every_mechanism() {
    for row in ROWS_OF_TIME {
        holds(row).await;
    }
}
