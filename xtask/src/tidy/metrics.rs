//! Every series that lb exports is explained to operators.

use std::collections::BTreeMap;

use super::{Problem, tree::Tree};

const PAGE: &str = "docs/OPERATING.md";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let series = exported(tree);
    if series.is_empty() {
        return vec![Problem::whole(
            "lb/src/metrics.rs",
            "names no series: nothing to compare with the documentation",
        )];
    }
    let Some(page) = tree.file(PAGE) else {
        return vec![Problem::whole(
            PAGE,
            "is missing: it explains every series to operators",
        )];
    };
    let undocumented = series.iter().filter(|(name, _)| !mentions(&page.text, name));
    undocumented
        .map(|(name, (path, line))| Problem::at(path, *line, format!("`{name}` is not in {PAGE}")))
        .collect()
}

/// Names of series in lb's metrics module, with where each is first written.
fn exported(tree: &Tree) -> BTreeMap<&str, (&str, usize)> {
    let mut series = BTreeMap::new();
    let ours = |path: &str| path == "lb/src/metrics.rs" || path.starts_with("lb/src/metrics/");
    for file in tree
        .ending("rs")
        .filter(|file| ours(&file.path) && !file.is_test())
    {
        for (number, line) in file
            .lines()
            .take_while(|(number, _)| *number < file.first_test_line())
        {
            // Every second part is inside quotes; a name has no escapes.
            for name in line.split('"').skip(1).step_by(2).filter(|text| is_series(text)) {
                series.entry(name).or_insert((file.path.as_str(), number));
            }
        }
    }
    series
}

fn is_series(text: &str) -> bool {
    text.strip_prefix("lb_")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_name_char))
}

/// Whether `name` stands in `page` as a whole word.
fn mentions(page: &str, name: &str) -> bool {
    page.match_indices(name).any(|(at, _)| {
        let before = page[..at].chars().next_back();
        let after = page[at + name.len()..].chars().next();
        !before.is_some_and(is_name_char) && !after.is_some_and(is_name_char)
    })
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_documented_under_its_whole_name() {
        let code = "const A: &str = \"lb_requests_total\";\nconst B: &str = \"lb_share\";\nmod tests {\n\"lb_fake\"\n}\n";
        let page = "| `lb_requests_total{model}` | … |\n| `lb_share_ratio` | … |\n";
        let tree = Tree::of(&[("lb/src/metrics/mod.rs", code), (PAGE, page)]);
        let problems: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            ["lb/src/metrics/mod.rs:2: `lb_share` is not in docs/OPERATING.md"]
        );
    }

    #[test]
    fn an_empty_comparison_is_a_problem() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
