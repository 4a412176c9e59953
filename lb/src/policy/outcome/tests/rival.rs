//! What an ending leads to while another attempt of the request is under way.

use super::*;

// [HEDGE-4]
#[test]
fn what_another_try_could_mend_is_left_to_the_one_that_is_under_way() {
    let on_status = on_status();
    let beside = Rules {
        rival: true,
        last: true,
        ..rules(&on_status, None)
    };
    for ended in [
        status(503),
        Ended::Embedded { code: 500 },
        Ended::Connect,
        Ended::Unanswered,
        Ended::FirstTokenTimeout { after: LATE },
        Ended::ReadTimeout,
        Ended::Empty,
    ] {
        assert_eq!(judge(&ended, &beside).next, Next::Yield, "of {ended:?}");
        let alone = Rules {
            rival: false,
            ..beside
        };
        assert_ne!(judge(&ended, &alone).next, Next::Yield, "of {ended:?}");
    }
}

// [HEDGE-4]
#[test]
fn what_no_other_try_could_mend_is_the_answer_at_once() {
    let on_status = on_status();
    let beside = Rules {
        rival: true,
        ..rules(&on_status, None)
    };
    for (ended, next) in [
        (Ended::Committed { first_data: None }, Next::Commit),
        (status(400), Next::PassOn),
        (status(501), Next::PassOn),
        (Ended::Embedded { code: 401 }, Next::PassOn),
        (Ended::TotalDeadline, Next::Fail),
        // The same endpoint at once is no other try.
        (Ended::StaleConnection, Next::RetryFresh),
    ] {
        assert_eq!(judge(&ended, &beside).next, next, "of {ended:?}");
    }
}

// [HEDGE-3]
#[test]
fn who_was_outrun_is_nothing_to_anyone_and_unknown_to_the_share() {
    let (on_status, params) = (on_status(), Params::default());
    for rival in [false, true] {
        let rules = Rules {
            rival,
            ..rules(&on_status, Some(&params))
        };
        let expected = Judgement {
            share: Some(Outcome::Unknown),
            health: Verdict::Neutral,
            breaker: Verdict::Neutral,
            cooldown: Cooling::Leave,
            next: Next::Fail,
        };
        assert_eq!(judge(&Ended::Outrun, &rules), expected);
        assert_eq!(load(&Ended::Outrun, LATE), None);
    }
}
