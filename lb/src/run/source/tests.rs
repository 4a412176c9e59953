use std::fs;
use std::time::Instant;

use super::*;

/// A folder of the test's own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lb-source-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn seen(files: &[&PathBuf]) -> Seen {
    let files: Vec<PathBuf> = files.iter().map(|file| (*file).clone()).collect();
    let content = content(&files);
    Seen { files, content }
}

/// Whether a change is noticed by its event: well before the slow look.
async fn is_noticed(seen: &Seen) -> bool {
    tokio::time::timeout(LOOK / 2, seen.changed()).await.is_ok()
}

// [RELOAD-2]
#[tokio::test]
async fn a_change_is_noticed_by_its_event_and_once_it_rests() {
    let folder = Folder::new("change");
    let file = folder.write("lb.yaml", "a");
    let seen = seen(&[&file]);
    let begun = Instant::now();
    let change = async {
        // A busy neighbour neither hides a change nor makes one.
        folder.write("noise.log", "x");
        fs::write(&file, "b").unwrap();
    };
    let (noticed, ()) = tokio::join!(is_noticed(&seen), change);
    assert!(noticed && begun.elapsed() >= STILL);
}

// [RELOAD-2]
#[tokio::test]
async fn what_is_written_again_with_the_same_content_is_no_change() {
    let folder = Folder::new("same");
    let file = folder.write("lb.yaml", "a");
    let seen = seen(&[&file]);
    let look = tokio::time::timeout(STILL * 2, seen.changed());
    let write = async {
        fs::write(&file, "a").unwrap();
        fs::rename(folder.write("new.yaml", "a"), &file).unwrap();
    };
    let (look, ()) = tokio::join!(look, write);
    assert!(look.is_err());
}

// [RELOAD-3]
#[tokio::test]
async fn a_rename_and_an_exchanged_link_are_changes() {
    let folder = Folder::new("links");
    let (old, new) = (folder.0.join("1"), folder.0.join("2"));
    for (place, text) in [(&old, "a"), (&new, "b")] {
        fs::create_dir(place).unwrap();
        fs::write(place.join("lb.yaml"), text).unwrap();
    }
    // As Kubernetes does it: lb.yaml is a link into a folder that is itself a link, and that one is exchanged.
    let (data, file) = (folder.0.join("..data"), folder.0.join("lb.yaml"));
    std::os::unix::fs::symlink(&old, &data).unwrap();
    std::os::unix::fs::symlink("..data/lb.yaml", &file).unwrap();
    let before = seen(&[&file]);
    let swap = async {
        let aside = folder.0.join("..data_tmp");
        std::os::unix::fs::symlink(&new, &aside).unwrap();
        fs::rename(&aside, &data).unwrap();
    };
    let (noticed, ()) = tokio::join!(is_noticed(&before), swap);
    assert!(noticed);
    let before = seen(&[&file]);
    let rename = async { fs::rename(folder.write("aside", "c"), &file).unwrap() };
    let (noticed, ()) = tokio::join!(is_noticed(&before), rename);
    assert!(noticed);
}

// [RELOAD-3]
#[tokio::test]
async fn a_file_that_goes_and_one_of_a_secret_that_changes_are_changes() {
    let folder = Folder::new("gone");
    let (file, secret) = (folder.write("lb.yaml", "a"), folder.write("key", "1"));
    let before = seen(&[&file, &secret]);
    let rotate = async { fs::write(&secret, "2").unwrap() };
    let (noticed, ()) = tokio::join!(is_noticed(&before), rotate);
    assert!(noticed);
    let before = seen(&[&file, &secret]);
    let remove = async { fs::remove_file(&file).unwrap() };
    let (noticed, ()) = tokio::join!(is_noticed(&before), remove);
    assert!(noticed);
}
