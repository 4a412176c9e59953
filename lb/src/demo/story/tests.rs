use std::time::Duration;

use super::{Event, Story, TURNS};

fn told(story: &mut Story, seconds: u64) -> Vec<Event> {
    story.due(Duration::from_secs(seconds)).collect()
}

#[test]
fn every_turn_is_told_once_and_in_order_at_its_part_of_the_length() {
    let mut story = Story::new(Duration::from_secs(100));
    assert_eq!(told(&mut story, 0), [Event::Load(12.0)]);
    assert_eq!(told(&mut story, 11), []);
    assert_eq!(told(&mut story, 12), [Event::Load(45.0)]);
    assert_eq!(told(&mut story, 12), []);
    assert_eq!(told(&mut story, 80), [Event::MoreCapacity, Event::KillPreferred]);
    assert_eq!(told(&mut story, 100), [Event::KillAlternate, Event::Revive]);
    assert_eq!(told(&mut story, 1000), []);
}

#[test]
fn the_turns_are_in_the_order_of_their_time_and_within_the_story() {
    assert!(TURNS.is_sorted_by(|a, b| a.0 < b.0));
    assert!(TURNS.iter().all(|(part, _)| (0.0..1.0).contains(part)));
}
