//! Ways of choosing between endpoints that remember something: whose turn it is, how fast each was, who has which keys.

mod maglev;
mod peak;
mod turns;

pub use maglev::{Maglev, hash, hash_long};
pub use peak::Peak;
pub use turns::Turns;
