//! What the tests of the parsers share.

use proptest::test_runner::{Config, RngSeed};

/// The same `cases` in every run. `PROPTEST_RNG_SEED` chooses others, and `PROPTEST_CASES` more of them.
pub(super) fn seeded(cases: u32) -> Config {
    let config = Config::default();
    let seed = match config.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0x1B),
        chosen @ RngSeed::Fixed(_) => chosen,
    };
    Config {
        cases: cases.max(config.cases),
        rng_seed: seed,
        failure_persistence: None,
        ..config
    }
}
