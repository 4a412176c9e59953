use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn pace() -> Pace {
    Pace::new(Rules {
        max_body_bytes: 1,
        body_timeout: 8 * SECOND,
        body_grace: 10 * SECOND,
    })
}

// [HTTP-38]
#[test]
fn waiting_costs_and_bytes_earn_up_to_a_limit() {
    let mut pace = pace();
    assert_eq!(pace.patience(), 8 * SECOND, "no longer silence than any");
    pace.on_waited(7 * SECOND);
    assert_eq!(pace.patience(), 3 * SECOND);
    pace.on_bytes(500);
    assert_eq!(pace.patience(), 4 * SECOND);
    pace.on_waited(5 * SECOND);
    assert_eq!(pace.patience(), Duration::ZERO);
    pace.on_bytes(1);
    assert_eq!(pace.patience(), SECOND / 500);
    pace.on_bytes(usize::MAX);
    pace.on_waited(6 * SECOND);
    assert_eq!(pace.patience(), 4 * SECOND, "however many bytes");
}

// [HTTP-38]
#[test]
fn bytes_earn_what_a_client_may_be_silent_for() {
    let mut pace = Pace::new(Rules {
        max_body_bytes: 1,
        body_timeout: 60 * SECOND,
        body_grace: 10 * SECOND,
    });
    assert_eq!(pace.patience(), 10 * SECOND, "nothing has come");
    pace.on_bytes(10_000);
    assert_eq!(pace.patience(), 30 * SECOND);
    pace.on_bytes(usize::MAX);
    assert_eq!(pace.patience(), 60 * SECOND);
    pace.on_waited(59 * SECOND);
    assert_eq!(pace.patience(), SECOND);
}
