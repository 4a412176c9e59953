//! lb's share against other ways to use a preferred provider, in the same trouble, with the same requests.
//!
//! All of them run on the composition of [`super::fleet`], set up by configuration alone: what is compared is what an
//! operator could choose. docs/COMPARISON.md has what comes out.

mod cell;
mod page;
mod plot;
mod trouble;
mod way;

pub use cell::{Cell, cell};
pub use page::block;
pub use plot::svg;
pub use trouble::Trouble;
pub use way::Way;

/// The seeds of each cell; what is shown is the median over them.
pub const SEEDS: u64 = 5;
