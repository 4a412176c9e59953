use super::*;

#[test]
fn every_counter_has_the_name_of_its_variant() {
    for (counter, name) in [
        (Counter::Syn, "syn"),
        (Counter::HandshakeMicroseconds, "handshake_microseconds"),
        (Counter::ResetSent, "reset_sent"),
        (Counter::RetransmitSent, "retransmit_sent"),
        (Counter::SegmentsIgnored, "segments_ignored"),
        (Counter::UnreachableIgnored, "unreachable_ignored"),
        (Counter::EventsLost, "events_lost"),
    ] {
        assert_eq!(Counter::NAMES[counter as usize], name);
    }
}

#[test]
fn merging_adds_counters_and_keeps_the_latest_sign_of_life() {
    let mut one = Stats::ZERO;
    one.heard = 7;
    one.add(Counter::Syn, 2);
    let mut other = Stats::ZERO;
    other.heard = 5;
    other.add(Counter::Syn, 3);
    other.add(Counter::BytesSent, 10);
    one.merge(&other);
    assert_eq!(
        (one.heard, one.get(Counter::Syn), one.get(Counter::BytesSent)),
        (7, 5, 10)
    );
}

#[test]
fn what_is_not_believed_is_counted_and_is_no_sign_of_life() {
    let mut stats = Stats::ZERO;
    stats.received(Effects::IGNORED, 10, &Flow::UNSEEN, 5);
    stats.received(Effects::RST_IGNORED, 0, &Flow::UNSEEN, 6);
    assert_eq!((stats.heard, stats.get(Counter::SegmentsReceived)), (0, 2));
    assert_eq!(
        (
            stats.get(Counter::SegmentsIgnored),
            stats.get(Counter::ResetIgnored)
        ),
        (1, 1)
    );
    stats.received(Effects::default(), 0, &Flow::UNSEEN, 7);
    assert_eq!(stats.heard, 7);
}
