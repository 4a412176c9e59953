//! Where the requests of a conversation begin.

use super::*;
use crate::policy::balance::hash;

fn point(conversation: u32) -> Draw {
    Draw::of_bits(hash(&conversation.to_le_bytes()))
}

// [AFFINITY-3]
#[test]
fn a_conversation_begins_where_its_position_stands_to_the_share() {
    let mut rig = Rig::new();
    let mut diverted = Vec::new();
    for _ in 0..12 {
        let share = rig.snapshot().share;
        let now_diverted: Vec<u32> = (0..300)
            .filter(|conversation| {
                let at = point(*conversation);
                let expected = if at.value() < share {
                    Start::Preferred
                } else {
                    Start::Alternate
                };
                let starts = [(); 3].map(|()| rig.share.begin_at(rig.now, at).0);
                assert_eq!(starts, [expected; 3], "{conversation} at {share}");
                expected == Start::Alternate
            })
            .collect();
        // Whoever begins elsewhere goes on to while the share falls.
        assert!(diverted.iter().all(|before| now_diverted.contains(before)));
        diverted = now_diverted;
        rig.lower();
    }
    assert!(!diverted.is_empty());
}

// [AFFINITY-4]
#[test]
fn the_sequence_of_the_others_is_what_it_was_without_them() {
    let mut random = fastrand::Rng::with_seed(5);
    let (mut mixed, mut alone) = (Rig::new(), Rig::new());
    for _ in 0..5 {
        mixed.lower();
        alone.lower();
    }
    for _ in 0..2000 {
        for _ in 0..random.u32(0..3) {
            let _start = mixed.share.begin_at(mixed.now, point(random.u32(..)));
        }
        let (one, other) = (mixed.share.begin(mixed.now), alone.share.begin(alone.now));
        assert_eq!(one.0, other.0);
    }
}

// [AFFINITY-4]
#[test]
fn many_conversations_split_like_the_share_as_far_as_chance_goes() {
    let mut rig = Rig::new();
    for _ in 0..8 {
        rig.lower();
        let share = rig.snapshot().share;
        for run in 0..20u32 {
            let conversations = run * 200..(run + 1) * 200;
            let preferred = conversations
                .filter(|conversation| {
                    rig.share.begin_at(rig.now, point(*conversation)).0 == Start::Preferred
                })
                .count();
            let preferred = f64::from(u32::try_from(preferred).expect("at most 200"));
            // Five standard deviations of as many coins; nothing like the 3 of the sequence holds here.
            let most = 5.0 * (200.0 * share * (1.0 - share)).sqrt();
            assert!(
                (preferred - 200.0 * share).abs() <= most,
                "{preferred} of 200 at {share}"
            );
        }
    }
}
