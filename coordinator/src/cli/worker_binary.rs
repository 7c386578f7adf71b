//! Finds `coord-worker`, which holds all code that knows models, and hands work over to it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::exit::Problem;

const NAME: &str = "coord-worker";
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The worker binary beside this one, else in PATH; whatever its version.
pub fn installed() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    search(beside.as_deref(), std::env::split_paths(&path))
}

/// The installed worker binary, of this very version.
pub fn find() -> Result<PathBuf, Problem> {
    let found = installed().ok_or_else(|| {
        Problem::usage(format!("{NAME} is missing: it is neither beside coord nor in PATH"))
            .hint(format!("install {NAME} {VERSION} into the directory of coord"))
    })?;
    let output = Command::new(&found)
        .arg("--version")
        .output()
        .map_err(|error| Problem::usage(format!("cannot start {}: {error}", found.display())))?;
    check_version(&found, &String::from_utf8_lossy(&output.stdout))?;
    Ok(found)
}

fn search(beside: Option<&Path>, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    beside.map(Path::to_owned).into_iter().chain(path).map(|folder| folder.join(NAME)).find(|file| file.is_file())
}

fn check_version(found: &Path, said: &str) -> Result<(), Problem> {
    let got = said.split_whitespace().last().unwrap_or("nothing");
    if said.starts_with(NAME) && got == VERSION {
        return Ok(());
    }
    Err(Problem::usage(format!("{} is of another version: expected {VERSION}, got {got}", found.display()))
        .hint("install coord and coord-worker of one release side by side"))
}

/// Becomes the worker binary: streams, signals and exit status are then its own. Comes back only if that fails.
pub fn become_worker(arguments: impl IntoIterator<Item = OsString>) -> Problem {
    let found = match find() {
        Ok(found) => found,
        Err(problem) => return problem,
    };
    let error = Command::new(&found).args(arguments).exec();
    Problem::usage(format!("cannot start {}: {error}", found.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_beside_this_one_wins_over_path() {
        let beside = tempfile::tempdir().expect("a directory");
        let in_path = tempfile::tempdir().expect("a directory");
        let path = || std::iter::once(in_path.path().to_owned());
        assert_eq!(search(Some(beside.path()), path()), None);
        std::fs::write(in_path.path().join(NAME), "").expect("writable");
        assert_eq!(search(Some(beside.path()), path()), Some(in_path.path().join(NAME)));
        std::fs::write(beside.path().join(NAME), "").expect("writable");
        assert_eq!(search(Some(beside.path()), path()), Some(beside.path().join(NAME)));
    }

    #[test]
    fn another_version_is_refused_with_both_versions() {
        let path = Path::new("/opt/coord-worker");
        assert!(check_version(path, &format!("coord-worker {VERSION}\n")).is_ok());
        let refused = check_version(path, "coord-worker 9.9.9\n").expect_err("another version");
        assert_eq!(
            refused.to_string(),
            format!("/opt/coord-worker is of another version: expected {VERSION}, got 9.9.9")
        );
        assert!(check_version(path, "").is_err());
    }
}
