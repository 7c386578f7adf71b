//! Jobs whose checkpoints, logs and data lie in a real S3 server.

use std::path::Path;

use coord_tests::cluster::{Cluster, Layout, SeaweedFs, until};
use serde_json::Value;

struct InBucket {
    cluster: Cluster,
    store: SeaweedFs,
    _folder: tempfile::TempDir,
}

fn start(workers: &[u32]) -> InBucket {
    let folder = tempfile::tempdir().expect("a directory");
    let store = SeaweedFs::start(folder.path());
    let layout =
        Layout { storage: Some(store.url("cluster")), environment: store.environment(), ..Layout::workers(workers) };
    InBucket { cluster: Cluster::start(layout), store, _folder: folder }
}

#[test]
fn a_job_trains_answers_stops_and_is_resumed_by_another_in_a_bucket() {
    let InBucket { cluster, store, _folder } = start(&[1, 1]);
    let dialogues = cluster.dialogues();
    let train = store.url("shared/train");
    let mut program = dialogues.flags(0);
    program.push(format!("--train_dir={train}"));
    cluster.submit("talks", &["--workers", "2"], &program);
    cluster.until("talks", "a checkpoint", |seen| !seen["checkpoints"].as_array().expect("a list").is_empty());
    a_chat_moves_on_with_the_training(&cluster);

    cluster.coord(&["cancel", "talks"]).done();
    assert_eq!(cluster.wait("talks").status, Some(3));
    let stopped = cluster.coord(&["checkpoints", "verify", "talks", "--output", "json"]).json();
    let steps: Vec<u64> = stopped.as_array().expect("a list").iter().filter_map(|row| row["step"].as_u64()).collect();
    assert_eq!(steps.len(), 5, "the newest five stay: {steps:?}");
    let newest = *steps.iter().max().expect("not empty");

    // Another job goes on where the first one stopped, to a step on the same grid as a quiet run.
    let steps = (newest / 20 + 3) * 20;
    let mut program = dialogues.flags(steps);
    program.push(format!("--train_dir={train}"));
    cluster.submit("goes_on", &["--workers", "1"], &program);
    assert_eq!(cluster.wait("goes_on").done(), "SUCCEEDED\n");
    let log = cluster.coord(&["logs", "goes_on"]).done();
    assert!(log.contains(&format!("resuming at step {newest}")), "{log}");
    assert_eq!(cluster.digest(&train), cluster.quiet_digest(1, &dialogues.flags(steps)));
    let answers = cluster.follow(&["chat", &train, "--output", "json"]);
    let greeting = ask(answers, "how are you ?");
    assert_eq!(greeting["step"], steps, "{greeting}");
    logs_lie_in_the_bucket(&cluster, &store);
}

/// Two questions through one pipe: the second is answered by a later step.
fn a_chat_moves_on_with_the_training(cluster: &Cluster) {
    let mut chat = cluster.follow(&["chat", "talks", "--output", "json"]);
    let line = |chat: &coord_tests::cluster::Followed, number: usize| {
        until(&format!("answer {number}"), || {
            let said = chat.stdout();
            let found = said.split_inclusive('\n').nth(number).filter(|line| line.ends_with('\n'));
            let found = found.ok_or_else(|| format!("{said}\n{}", chat.stderr()))?;
            Ok(serde_json::from_str::<Value>(found).expect("one JSON value a line"))
        })
    };
    chat.say("how are you ?");
    let first = line(&chat, 0)["step"].as_u64().expect("a step");
    cluster.until_step("talks", first + 100);
    chat.say("what is your name ?");
    let second = line(&chat, 1)["step"].as_u64().expect("a step");
    assert!(second > first, "step {first}, then {second}");
    chat.end().done();
}

fn ask(mut chat: coord_tests::cluster::Followed, question: &str) -> Value {
    chat.say(question);
    let said = chat.end().done();
    serde_json::from_str(said.lines().next().expect("an answer")).expect("JSON")
}

fn logs_lie_in_the_bucket(cluster: &Cluster, store: &SeaweedFs) {
    let logs = store.url("cluster/jobs/goes_on/logs/master-replica-0");
    let listed = until("the log of the master in the bucket", || {
        let ended = cluster.coord(&["storage", "ls", "--recursive", &logs, "--output", "quiet"]);
        if ended.status == Some(0) { Ok(ended.stdout) } else { Err(ended.to_string()) }
    });
    let first = listed.lines().next().expect("a chunk");
    let text = cluster.coord(&["storage", "cat", first]).done();
    assert!(text.contains("Running command: translate"), "{text}");
}

#[test]
fn the_storage_commands_list_copy_print_and_remove_objects() {
    let InBucket { cluster, store, _folder } = start(&[1]);
    let here = cluster.folder().join("note.txt");
    std::fs::write(&here, "kept\n").expect("writable");
    let here = text(&here);
    let (note, copy) = (store.url("notes/a.txt"), store.url("notes/deep/b.txt"));
    cluster.coord(&["storage", "cp", here, &note]).done();
    cluster.coord(&["storage", "cp", &note, &copy]).done();
    assert_eq!(cluster.coord(&["storage", "cat", &note, &copy]).done(), "kept\nkept\n");
    let notes = store.url("notes");
    let listed = cluster.coord(&["storage", "ls", &notes, "--output", "quiet"]).done();
    assert_eq!(listed, format!("{note}\n{notes}/deep/\n"));
    let listed = cluster.coord(&["storage", "ls", "--recursive", &notes, "--output", "quiet"]).done();
    assert_eq!(listed, format!("{note}\n{copy}\n"));
    let back = cluster.folder().join("back");
    cluster.coord(&["storage", "cp", "--recursive", &notes, text(&back)]).done();
    assert_eq!(std::fs::read_to_string(back.join("deep/b.txt")).expect("copied"), "kept\n");
    cluster.coord(&["storage", "rm", &notes]).refused(5, &["--recursive"]);
    cluster.coord(&["storage", "rm", &note]).done();
    cluster.coord(&["storage", "cat", &note]).refused(5, &[&note, "not found"]);
    cluster.coord(&["storage", "rm", "--recursive", "--yes", &notes]).done();
    cluster.coord(&["storage", "ls", "--recursive", &notes]).refused(5, &[&notes]);
}

#[test]
fn a_run_and_its_neighbours_with_longer_names_are_never_mixed_up() {
    // CKP-14.
    let InBucket { cluster, store, _folder } = start(&[1]);
    let dialogues = cluster.dialogues();
    let place = |name: &str| store.url(&format!("runs/{name}"));
    let train = |name: &str, steps| {
        let job_dir = place(name);
        let mut words = vec!["local", "train", "--job-dir", &job_dir, "--"];
        let program = dialogues.flags(steps);
        words.extend(program.iter().map(String::as_str));
        cluster.coord(&words)
    };
    let objects =
        |name: &str| cluster.coord(&["storage", "ls", "--recursive", &place(name), "--output", "json"]).json();
    let neighbours = ["run10", "run1-b", "run1.old"];
    for name in ["run1"].iter().chain(&neighbours) {
        train(name, 40).done();
    }
    let before = neighbours.map(objects);
    let listed = cluster.coord(&["checkpoints", "ls", &place("run1"), "--output", "quiet"]).done();
    assert_eq!(listed, "40\n20\n");
    let resumed = train("run1", 60).done();
    assert!(resumed.contains("resuming at step 40"), "{resumed}");
    assert_eq!(neighbours.map(objects), before);
    cluster.coord(&["storage", "rm", "--recursive", "--yes", &place("run1")]).done();
    cluster.coord(&["storage", "ls", "--recursive", &place("run1")]).refused(5, &["run1"]);
    assert_eq!(neighbours.map(objects), before);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}
