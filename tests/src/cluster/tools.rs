//! Where the programs are: ours beside the test executable, others where `tests/run.sh` has put them.

use std::path::PathBuf;

/// `coord` or `coord-worker`, as built together with this test or benchmark.
pub fn binary(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("a program knows its own path");
    // target/PROFILE/deps/TEST or target/PROFILE/bench
    let mut folder = program.parent().expect("a program lies in a folder");
    if folder.ends_with("deps") {
        folder = folder.parent().expect("a test lies in the folder of its profile");
    }
    let path = folder.join(name);
    assert!(path.is_file(), "{} is missing: tests/run.sh builds it first, `cargo build --release` too", path.display());
    path
}

pub fn promtool() -> PathBuf {
    tool("COORD_TEST_PROMTOOL")
}

pub(super) fn weed() -> PathBuf {
    tool("COORD_TEST_WEED")
}

fn tool(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.unwrap_or_else(|| {
        panic!("{variable} is not set: run the tests by tests/run.sh, which installs what they need")
    })
}
