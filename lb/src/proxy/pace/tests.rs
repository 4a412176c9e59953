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
fn waiting_costs_and_bytes_earn_up_to_the_grace() {
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
