//! The same bits for any number of workers, and through any history of kills.

use std::time::Duration;

use coord_tests::local::Place;
use rustix::process::Signal;

fn development_lines(out: &str) -> Vec<String> {
    let lines = out.lines().filter(|line| line.starts_with("  eval:") || line.starts_with("global step"));
    // The time of a step is the machine's.
    lines.map(|line| line.split(" step-time ").next().unwrap_or(line).to_owned()).collect()
}

#[test]
fn any_number_of_workers_gives_the_same_digest_and_another_seed_or_byte_another() {
    let place = Place::with_pairs(200, 23);
    let digest = |local: &str, program: &str| {
        place.train(&format!("{local} --job-dir job"), &format!("--steps=40 {program}")).good();
        let digest = place.digest("job");
        std::fs::remove_dir_all(place.file("job")).unwrap();
        digest
    };
    let one = digest("--workers 1", "");
    for workers in [2, 3, 5] {
        assert_eq!(digest(&format!("--workers {workers}"), ""), one, "{workers} workers");
    }
    assert_eq!(digest("--workers 1 --cpus 3", ""), one, "three threads");
    assert_ne!(digest("--workers 1", "--seed=43"), one);

    let mut bytes = std::fs::read(place.file("train.a")).unwrap();
    let letter = bytes.iter().position(u8::is_ascii_lowercase).unwrap();
    bytes[letter] = if bytes[letter] == b'q' { b'z' } else { b'q' };
    place.write("train.a", bytes);
    assert_ne!(digest("--workers 1", ""), one);
}

#[test]
fn fewer_samples_than_workers_and_short_last_batches_neither_hang_nor_change_the_bits() {
    let place = Place::with_pairs(14, 5).flags("--batch_size=2");
    place.train("--job-dir one", "--steps=30").good();
    place.train("--workers 3 --job-dir three", "--steps=30").good();
    assert_eq!(place.digest("one"), place.digest("three"));

    let place = Place::new();
    for name in ["train.a", "train.b"] {
        let text = place.read(name);
        place.write(
            name,
            text.lines().chain(text.lines()).take(1001).map(|line| format!("{line}\n")).collect::<String>(),
        );
    }
    place.train("--job-dir one", "--steps=140 --steps_per_checkpoint=140").good();
    let four = place.train("--workers 4 --job-dir four", "--steps=140 --steps_per_checkpoint=140").good();
    assert_eq!(place.digest("one"), place.digest("four"));
    // 140 steps are more than an epoch of 1,001 lines in batches of 8.
    let epoch: u64 = four.lines().find_map(|line| line.strip_suffix(" steps an epoch")).unwrap().parse().unwrap();
    assert!((120..=129).contains(&epoch), "{epoch}");
}

#[test]
fn development_figures_do_not_depend_on_the_number_of_workers() {
    let place = Place::with_pairs(100, 23).flags("--batch_size=4 --eval_pairs=0");
    let one = development_lines(&place.train("--job-dir one", "--steps=40").good());
    assert_eq!(one.len(), 10, "{one:?}");
    for workers in [2, 4] {
        let out = place.train(&format!("--workers {workers} --job-dir job{workers}"), "--steps=40").good();
        assert_eq!(development_lines(&out), one, "{workers} workers");
    }
}

#[test]
fn runs_killed_in_the_middle_of_epochs_and_resumed_with_other_workers_end_with_the_same_digest() {
    // 90 pairs in batches of 4: about 24 steps an epoch. Saved every 7 steps, so never at the end of one.
    let place = Place::with_pairs(90, 10).flags("--batch_size=4 --steps_per_checkpoint=7");
    place.train("--job-dir whole", "--steps=700").good();
    let whole = place.digest("whole");
    for workers in [[1, 1, 1], [2, 2, 1], [3, 1, 2]] {
        let job = format!("job{workers:?}").replace([',', ' ', '[', ']'], "");
        for (round, workers) in workers.into_iter().enumerate() {
            let local = format!("--workers {workers} --job-dir {job}");
            let mut run = place.start(&local, "--steps=700");
            run.wait_for(if round == 0 { "global step 35 " } else { "global step" });
            run.wait_for("global step");
            run.kill();
        }
        let resumed = place.train(&format!("--workers {} --job-dir {job}", workers[0]), "--steps=700").good();
        assert!(resumed.contains("resuming at step "), "{resumed}");
        assert_eq!(place.digest(&job), whole, "{workers:?} workers");
    }
}

#[test]
fn a_run_that_is_asked_to_stop_saves_its_step_and_resumes_to_the_same_digest() {
    let place = Place::with_pairs(90, 10);
    place.train("--job-dir whole", "--steps=1000").good();
    let mut run = place.start("--workers 2 --job-dir job", "--steps=1000");
    run.wait_for("global step 40 ");
    run.signal(Signal::TERM);
    let stopped = run.wait();
    assert_eq!(stopped.code(), Some(143), "{}", stopped.err);
    let step: u64 = place.worker("checkpoints ls job --output quiet").good().lines().next().unwrap().parse().unwrap();
    assert!(step >= 40, "stopped at step {step}");
    let resumed = place.train("--job-dir job", "--steps=1000").good();
    assert!(resumed.contains(&format!("resuming at step {step}")), "{resumed}");
    assert_eq!(place.digest("job"), place.digest("whole"));
}

#[test]
fn a_replica_that_dies_ends_the_run_within_seconds_and_says_which_one() {
    let place = Place::with_pairs(90, 10);
    let mut run = place.start("--workers 3 --job-dir job", "--steps=0");
    run.wait_for("global step 40 ");
    run.kill_child(1);
    let ended = run.wait();
    assert!(ended.code().is_some_and(|code| code != 0), "{}", ended.err);
    assert!(ended.err.contains("ended first, with signal 9"), "{}", ended.err);
    assert!(ended.took < Duration::from_secs(20), "took {:?}", ended.took);
}
