//! Where the programs are: ours beside the test executable, others where `tests/run.sh` has put them.

use std::path::PathBuf;

/// `coord` or `coord-worker`, as built together with this test.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/PROFILE/deps/TEST
    let folder = test.parent().and_then(|deps| deps.parent()).expect("a test lies in the folder of its profile");
    let path = folder.join(name);
    assert!(path.is_file(), "{} is missing: run the tests by tests/run.sh, which builds it first", path.display());
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
