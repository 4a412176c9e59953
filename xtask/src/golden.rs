//! `cargo xtask golden`: accepts what the tests produce as the new golden files; the diff is then the review.

use crate::{
    command::{self, Result},
    suite,
};

pub(crate) fn run() -> Result {
    command::run(suite::all()?.env("UPDATE", "1").env("INSTA_UPDATE", "always"))
}
