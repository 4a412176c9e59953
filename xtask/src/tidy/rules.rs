//! Every rule of docs/BEHAVIOUR.md is cited by a test that shows it, and every cited rule is there.
//!
//! A rule is a line `- **[AIMD-7]** text`; a citation is its id in square brackets in a comment, alone or in a list:
//! `// [AIMD-7]`, `/// … [AIMD-7, AIMD-9]`. Only citations in tests count as shown.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Problem,
    tree::{File, Tree},
};

const RULES: &str = "docs/BEHAVIOUR.md";

/// Names of standards that look like ids.
const NOT_RULES: [&str; 4] = ["ISO", "RFC", "SHA", "UTF"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(file) = tree.file(RULES) else {
        return vec![Problem::whole(
            RULES,
            "is missing: it holds the numbered rules that tests cite",
        )];
    };
    let (rules, mut problems) = defined(file);
    let mut shown = BTreeSet::new();
    for file in tree.ending("rs").filter(|file| !file.path.starts_with("xtask/")) {
        let tests_from = file.first_test_line();
        for (number, line) in file.lines() {
            for id in cited(line) {
                if number >= tests_from {
                    shown.insert(id);
                }
                if !rules.contains_key(id) {
                    problems.push(Problem::at(
                        &file.path,
                        number,
                        format!("[{id}] is not in {RULES}"),
                    ));
                }
            }
        }
    }
    let unshown = rules.iter().filter(|(id, _)| !shown.contains(*id));
    problems.extend(unshown.map(|(id, line)| Problem::at(RULES, *line, format!("no test cites [{id}]"))));
    problems
}

/// The rules with their lines, and those that are written twice.
fn defined(file: &File) -> (BTreeMap<&str, usize>, Vec<Problem>) {
    let mut rules = BTreeMap::new();
    let mut problems = Vec::new();
    for (number, line) in file.lines() {
        let Some((id, text)) = line.strip_prefix("- **[").and_then(|rest| rest.split_once("]**")) else {
            continue;
        };
        if !is_id(id) {
            problems.push(Problem::at(
                RULES,
                number,
                format!("`{id}` is not an id such as AIMD-7"),
            ));
        }
        if text.trim().is_empty() {
            problems.push(Problem::at(RULES, number, format!("[{id}] says nothing")));
        }
        if rules.insert(id, number).is_some() {
            problems.push(Problem::at(RULES, number, format!("[{id}] is there twice")));
        }
    }
    (rules, problems)
}

/// The ids in the comment of `line`.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let comment = line.find("//").map_or("", |at| &line[at..]);
    let brackets = comment.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    brackets
        .flat_map(|(list, _)| list.split(',').map(str::trim))
        .filter(|id| is_id(id))
}

fn is_id(text: &str) -> bool {
    text.rsplit_once('-').is_some_and(|(family, number)| {
        family.starts_with(|c: char| c.is_ascii_uppercase())
            && family
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
            && !NOT_RULES.contains(&family)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_rule_without_a_test_and_a_citation_without_a_rule_are_problems() {
        let rules = "# Rules\n- **[AIMD-1]** one.\n- **[AIMD-2]** two.\n- **[SSE-1]** three.\n";
        let code = "//! Explains. [AIMD-2]\nfn f() {}\n\nmod tests {\n    // [SSE-1]\n    fn t() {}\n}\n";
        let tests = "// [AIMD-1, AIMD-9]\nfn t() {}\n";
        assert_eq!(
            problems(&[
                (RULES, rules),
                ("lb/src/a.rs", code),
                ("lb/src/b/tests.rs", tests)
            ]),
            [
                "lb/src/b/tests.rs:1: [AIMD-9] is not in docs/BEHAVIOUR.md",
                "docs/BEHAVIOUR.md:3: no test cites [AIMD-2]"
            ]
        );
    }

    #[test]
    fn a_rule_is_written_once_and_says_something() {
        let rules = "- **[A-1]** x\n- **[A-1]** y\n- **[A-2]**\n- **[a-3]** z\n";
        let tests = "// [A-1] [A-2]\n";
        let found = problems(&[(RULES, rules), ("tests/tests/a.rs", tests)]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], "docs/BEHAVIOUR.md:2: [A-1] is there twice");
    }

    #[test]
    fn only_comments_cite_and_only_ids_are_citations() {
        let ids: Vec<_> =
            cited("let x = a[I-1]; // see [SSE-3], [`Vec`], [link](x), [UTF-8], [RFC-9110], [H2-4]")
                .collect();
        assert_eq!(ids, ["SSE-3", "H2-4"]);
    }

    #[test]
    fn the_page_itself_must_be_there() {
        assert_eq!(problems(&[]).len(), 1);
    }
}
