//! How long a file may be.

use super::{Problem, tree::Tree};

/// Most files are half of this; one that reaches it has two subjects.
const MOST: usize = 400;

/// Tests may be longer: they are lists.
const MOST_IN_TESTS: usize = 800;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let too_long = tree.ending("rs").filter_map(|file| {
        let lines = file.lines().count();
        let most = if file.is_test() { MOST_IN_TESTS } else { MOST };
        (lines > most).then(|| Problem::whole(&file.path, format!("{lines} lines; at most {most}: split it")))
    });
    too_long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_may_be_twice_as_long() {
        let lines = |count: usize| "x\n".repeat(count);
        let (most, over, tests) = (lines(400), lines(401), lines(801));
        let tree = Tree::of(&[
            ("lb/src/a.rs", &most),
            ("lb/src/b.rs", &over),
            ("lb/src/b/tests.rs", &over),
            ("tests/tests/c.rs", &tests),
        ]);
        let problems: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "lb/src/b.rs: 401 lines; at most 400: split it",
                "tests/tests/c.rs: 801 lines; at most 800: split it"
            ]
        );
    }
}
