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
    let table = Expected {
        health: row.health,
        breaker: row.breaker,
        cooldown: row.cooldown,
        share: None,
    };
    // The provider has another endpoint, and there is an alternate.
    let retried = [usize::from(row.retry == Retry::First), 0];
    let over = usize::from(row.fails_over && row.retry != Retry::First);
    let seen = observe(
        row,
        Others {
            replica: true,
            alternate: true,
        },
        false,
    )
    .await;
    assert_eq!(seen.others, [retried[0], over], "{}: between both", row.name);
    assert_eq!(seen.failovers, over as u64, "{}: between both", row.name);
    seen.is(row, &table);
    // It has, and there is none.
    let retried = matches!(row.retry, Retry::First | Retry::IfAlone);
    let seen = observe(
        row,
        Others {
            replica: true,
            alternate: false,
        },
        false,
    )
    .await;
    assert_eq!(
        seen.others,
        [usize::from(retried), 0],
        "{}: beside a replica",
        row.name
    );
    assert_eq!(seen.retries, u64::from(retried), "{}", row.name);
    seen.is(row, &table);
    // It has none.
    let alternate = Others {
        replica: false,
        alternate: true,
    };
    let seen = observe(row, alternate, false).await;
    assert_eq!(
        seen.others,
        [0, usize::from(row.fails_over)],
        "{}: beside an alternate",
        row.name
    );
    assert_eq!(
        (seen.retries, seen.failovers),
        (0, u64::from(row.fails_over)),
        "{}",
        row.name
    );
    seen.is(row, &table);
    // With a controller: what it counts as a breach is nothing to the others.
    let seen = observe(row, alternate, true).await;
    let share = if row.share == Some("breach") {
        Expected {
            health: Verdict::Neutral,
            breaker: Verdict::Neutral,
            cooldown: Cooling::Left,
            share: row.share,
        }
    } else {
        Expected {
            share: row.share,
            ..table
        }
    };
    assert_eq!(
        seen.others,
        [0, usize::from(row.fails_over)],
        "{}: with a share",
        row.name
    );
    seen.is(row, &share);
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
