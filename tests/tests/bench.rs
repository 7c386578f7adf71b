//! The benchmarks run and say what they promise to say; no figure of a busy machine is judged here.

use std::process::Command;

use coord_tests::cluster::binary;
use serde_json::Value;

fn last_line(figure: &str) -> Value {
    let ended = Command::new(binary("bench")).args([figure, "--smoke"]).output().expect("bench can be started");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{out}\n{err}");
    let last = out.lines().last().expect("a last line");
    serde_json::from_str(last).unwrap_or_else(|error| panic!("no JSON ({error}): {out}"))
}

#[test]
fn f10_times_each_submit_to_its_first_step() {
    let said = last_line("f10");
    assert_eq!((said["figure"].as_str(), said["count"].as_u64()), (Some("F10"), Some(3)), "{said}");
    let seconds = |key: &str| said[key].as_f64().unwrap_or_else(|| panic!("{key} in {said}"));
    assert!(0.0 < seconds("p50") && seconds("p50") <= seconds("p99"), "{said}");
    assert_eq!(seconds("value"), seconds("p99"));
    assert!((seconds("ratio") * seconds("value") - seconds("peer")).abs() < 1e-9, "{said}");
}

#[test]
fn f15_looks_at_the_memory_of_coordinator_and_agent() {
    let said = last_line("f15");
    let names: Vec<_> = said["cases"].as_array().expect("cases").iter().map(|case| &case["name"]).collect();
    assert_eq!(names, ["coordinator", "agent with its replicas"]);
    assert!(said["cases"].as_array().expect("cases").iter().all(|case| case["value"].as_f64() > Some(1.0)), "{said}");
    assert!(said["machine"].as_str().is_some_and(|machine| machine.contains("cores")), "{said}");
}
