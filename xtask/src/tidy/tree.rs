//! The text of the project, read once for all checks.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::command::{Failure, Result};

/// Endings of the files whose text is checked.
const TEXT: [&str; 6] = ["md", "rs", "sh", "toml", "yaml", "yml"];

#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Files of text, by path.
    pub(super) files: Vec<File>,
    /// All files and folders, for what links to them.
    paths: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct File {
    /// From the root of the workspace, with slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl Tree {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read(root, root)
            .map_err(|error| Failure::new(format!("cannot read the tree: {error}")))?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read(&mut self, root: &Path, folder: &Path) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = relative(root, &path);
            if entry.file_type()?.is_dir() {
                // What cargo builds lies beside a manifest; a module may be called `target` as well.
                let built = name == "target" && folder.join("Cargo.toml").exists();
                if built || name == ".git" {
                    continue;
                }
                self.read(root, &path)?;
            } else if path
                .extension()
                .is_some_and(|end| TEXT.iter().any(|text| end == *text))
            {
                self.files.push(File {
                    path: relative.clone(),
                    text: fs::read_to_string(&path)?,
                });
            }
            self.paths.insert(relative);
        }
        Ok(())
    }

    /// Whether there is a file or a folder at `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path.trim_end_matches('/'))
    }

    /// The file at `path`, if it is text.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files whose name ends in `.ending`.
    pub(super) fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files
            .iter()
            .filter(move |file| file.path.rsplit('.').next() == Some(ending))
    }

    /// A tree for a test.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(File {
                path: (*path).into(),
                text: (*text).into(),
            });
            for (at, _) in path.match_indices('/') {
                tree.paths.insert(path[..at].into());
            }
            tree.paths.insert((*path).into());
        }
        tree
    }
}

impl File {
    /// Whether the whole file is tests: a child module `tests`, or anything of the tests crate.
    pub(super) fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| part == "tests" || part == "tests.rs" || part == "benches")
    }

    /// Lines with their numbers from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// The line from which an inline test module reaches to the end; tests come last in a file.
    pub(super) fn first_test_line(&self) -> usize {
        if self.is_test() {
            return 1;
        }
        self.lines()
            .find(|(_, line)| *line == "mod tests {")
            .map_or(usize::MAX, |(number, _)| number)
    }
}

fn relative(root: &Path, path: &Path) -> String {
    let relative: PathBuf = path.strip_prefix(root).unwrap_or(path).into();
    relative.to_string_lossy().replace('\\', "/")
}
