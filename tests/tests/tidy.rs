//! Rules of the repository that a manifest alone does not keep.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATES: [&str; 7] = ["proto", "common", "common/io", "coordinator/core", "coordinator", "worker", "tests"];
const LINES_MAX: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests crate lies in the workspace")
}

/// Names of all packages that a package is built from.
fn built_from(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("package names are ASCII");
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace is readable") {
        let path = entry.expect("a folder of the workspace is readable").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let mut out = Vec::new();
    for member in ["proto", "common", "coordinator", "worker", "tests"] {
        sources(&root().join(member), &mut out);
    }
    assert!(out.len() > 100, "found only {} source files", out.len());
    out
}

#[test]
fn the_core_is_built_without_runtime_storage_or_randomness() {
    let core = built_from("coordinator-core");
    for refused in ["tokio", "object_store", "rand", "reqwest", "getrandom"] {
        assert!(!core.iter().any(|name| name == refused), "coordinator-core is built from {refused}");
    }
    assert!(core.iter().any(|name| name == "coord-common"));
}

#[test]
fn coordinator_and_worker_do_not_see_each_other() {
    assert!(!built_from("coordinator").iter().any(|name| name == "worker"));
    let worker = built_from("worker");
    assert!(!worker.iter().any(|name| name == "coordinator" || name == "coordinator-core"));
}

#[test]
fn each_binary_has_one_tls_provider() {
    for package in ["coordinator", "worker"] {
        let names = built_from(package);
        for refused in ["aws-lc-rs", "openssl", "native-tls"] {
            assert!(!names.iter().any(|name| name == refused), "{package} is built from {refused}");
        }
        assert!(names.iter().any(|name| name == "ring"), "{package} is built without ring");
    }
}

#[test]
fn every_source_file_opens_with_its_purpose_and_is_short() {
    for path in all_sources() {
        let text = fs::read_to_string(&path).expect("source files are UTF-8");
        assert!(text.starts_with("//!"), "{} does not open with a sentence of purpose", path.display());
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines, the ceiling is {LINES_MAX}", path.display());
    }
}

#[test]
fn every_crate_has_an_overview() {
    for member in CRATES {
        let path = root().join(member).join("OVERVIEW.md");
        assert!(path.is_file(), "{} is missing", path.display());
    }
}
