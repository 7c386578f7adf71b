//! `coord demo`, as somebody runs it who has just built the project.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use coord_tests::cluster::binary;

#[test]
fn the_demonstration_runs_to_its_end_without_a_terminal_and_leaves_no_process() {
    let folder = tempfile::tempdir().expect("a directory");
    let kept = folder.path().join("kept");
    let begun = Instant::now();
    let output = Command::new(binary("coord")).args(["demo", "--keep"]).arg(&kept).stdin(Stdio::null()).output();
    let output = output.expect("coord can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(begun.elapsed() < Duration::from_secs(120), "it took {:?}", begun.elapsed());
    assert_eq!(processes_with(kept.to_str().expect("a UTF-8 path")), Vec::<String>::new());
    assert!(said.contains("coord submit"), "{said}");
    assert!(kept.join("storage/jobs").is_dir());
}

/// Command lines of processes that mention a text.
fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}
