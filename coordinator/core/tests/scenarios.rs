//! Scenarios as text: each file of `testdata/` is a story, and what the state machine answers is written below each act.
//!
//! `COORD_REWRITE_SCENARIOS=1` writes the present answers into the files, to be read in the difference.

mod scenario;

use std::path::Path;

use scenario::runner::Runner;

#[test]
fn every_scenario_ends_as_it_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let rewrite = std::env::var_os("COORD_REWRITE_SCENARIOS").is_some();
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 15, "scenarios are missing, found {}", paths.len());
    let mut differing = Vec::new();
    for path in paths {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let written = std::fs::read_to_string(&path).expect("a readable scenario");
        let played = play(&name, &written);
        if played == written {
            continue;
        }
        if rewrite {
            std::fs::write(&path, &played).expect("a writable scenario");
        } else {
            differing.push(format!("{name} differs:\n{}", first_difference(&written, &played)));
        }
    }
    assert!(differing.is_empty(), "{}\nCOORD_REWRITE_SCENARIOS=1 writes the new answers", differing.join("\n"));
}

/// Blocks are separated by blank lines: commands, then `----`, then the answers.
fn play(name: &str, written: &str) -> String {
    let mut runner = Runner::new(name);
    let blocks = written.trim_end().split("\n\n").map(|block| {
        let commands: Vec<&str> = block.lines().take_while(|line| *line != "----").collect();
        if commands.iter().all(|line| line.starts_with('#')) {
            return block.to_owned();
        }
        let answers: Vec<String> =
            commands.iter().filter(|line| !line.starts_with('#')).flat_map(|line| runner.run(line)).collect();
        let mut lines: Vec<String> = commands.iter().map(|line| (*line).to_owned()).collect();
        lines.push("----".to_owned());
        lines.extend(answers);
        lines.join("\n")
    });
    let played: Vec<String> = blocks.collect();
    runner.finish();
    played.join("\n\n") + "\n"
}

fn first_difference(written: &str, played: &str) -> String {
    let mut pairs = written.lines().zip(played.lines()).enumerate();
    match pairs.find(|(_, (expected, got))| expected != got) {
        Some((line, (expected, got))) => format!("  line {}\n  expected: {expected}\n  got:      {got}", line + 1),
        None => format!("  expected {} lines, got {}", written.lines().count(), played.lines().count()),
    }
}
