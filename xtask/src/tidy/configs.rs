//! lb accepts every configuration that we ship.

use std::{path::Path, process::Command};

use super::{Problem, tree::Tree};
use crate::command;

const FOLDER: &str = "configs/";

pub(super) fn check(tree: &Tree, lb: &Path) -> Vec<Problem> {
    let shipped: Vec<_> = tree
        .ending("yaml")
        .map(|file| file.path.as_str())
        .filter(|path| is_config(path))
        .collect();
    if shipped.is_empty() {
        return vec![Problem::whole(FOLDER, "holds no configuration")];
    }
    let refused = shipped.into_iter().filter_map(|path| {
        let mut check = Command::new(lb);
        check
            .current_dir(command::root())
            .args(["check", "--no-environment", "--config", path]);
        let failure = command::run_quietly(&mut check).err()?;
        Some(Problem::whole(path, format!("lb refuses it: {failure}")))
    });
    refused.collect()
}

/// Folders below hold what other programs read: dashboards, alert rules.
fn is_config(path: &str) -> bool {
    path.strip_prefix(FOLDER).is_some_and(|name| !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_right_in_the_folder_are_lbs_own() {
        assert!(is_config("configs/lb.yaml"));
        assert!(!is_config("configs/prometheus/rules.yaml"));
        assert!(!is_config("docs/x.yaml"));
    }

    #[test]
    fn nothing_to_check_is_a_problem() {
        assert_eq!(check(&Tree::of(&[]), Path::new("/nowhere")).len(), 1);
    }
}
