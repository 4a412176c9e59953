//! What happens when.

use std::fmt;
use std::time::Duration;

/// One turn of the story.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Event {
    /// From now on so many requests arrive a second.
    Load(f64),
    /// The preferred provider gets three times its batch.
    MoreCapacity,
    /// The preferred provider's process dies.
    KillPreferred,
    /// The first alternate's process dies as well.
    KillAlternate,
    /// Both come back.
    Revive,
}

impl Event {
    /// The provider that it kills, if it does.
    pub(super) fn killed(self) -> Option<&'static str> {
        match self {
            Self::KillPreferred => Some("gpu"),
            Self::KillAlternate => Some("vendor-a"),
            Self::Load(_) | Self::MoreCapacity | Self::Revive => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(rate) if *rate < 24.0 => {
                write!(f, "-- load: {rate} requests/s; gpu can serve 24 in its budget")
            }
            Self::Load(rate) => write!(
                f,
                "-- load rises to {rate} requests/s, more than gpu can serve in its budget"
            ),
            Self::MoreCapacity => write!(
                f,
                "-- gpu gets three times its capacity and could serve all of the load"
            ),
            Self::KillPreferred => write!(
                f,
                "-- gpu is killed: streams that had begun are cut, all others answered for"
            ),
            Self::KillAlternate => write!(f, "-- vendor-a is killed as well"),
            Self::Revive => write!(f, "-- gpu and vendor-a are back"),
        }
    }
}

/// The turns that are still to come.
#[derive(Debug)]
pub(super) struct Story {
    length: Duration,
    told: usize,
}

impl Story {
    /// The story told in `length`.
    pub(super) fn new(length: Duration) -> Self {
        Self { length, told: 0 }
    }

    /// The turns that are due after `elapsed` and have not been told.
    pub(super) fn due(&mut self, elapsed: Duration) -> impl Iterator<Item = Event> + use<> {
        let from = self.told;
        let due = |&&(part, _): &&(f64, Event)| self.length.mul_f64(part) <= elapsed;
        self.told += TURNS[from..].iter().take_while(due).count();
        TURNS[from..self.told].iter().map(|&(_, event)| event)
    }
}

/// Each turn and the part of the story's length after which it comes.
const TURNS: [(f64, Event); 6] = [
    (0.0, Event::Load(12.0)),
    (0.12, Event::Load(45.0)),
    (0.50, Event::MoreCapacity),
    (0.76, Event::KillPreferred),
    (0.84, Event::KillAlternate),
    (0.90, Event::Revive),
];

#[cfg(test)]
mod tests;
