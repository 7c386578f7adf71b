//! A store that fails and processes that die while they save: whole checkpoints stay whole, nothing is lost.

use std::time::Duration;

use coord_tests::local::Place;

#[test]
fn kills_at_any_moment_of_a_save_leave_only_whole_checkpoints_and_the_same_end() {
    // A larger model and a save after each step: most of the time a save is under way.
    let place =
        Place::with_pairs(90, 4).flags("--size=64 --steps_per_checkpoint=1 --keep_checkpoints=2 --eval_pairs=1");
    for moment in 0..8u64 {
        let mut run = place.start("--job-dir job", "--steps=1000000");
        run.wait_for("steps an epoch");
        // Spread over the time that a save takes.
        run.run_for(Duration::from_millis(20 + moment * 13 % 50));
        run.kill();
        let verified = place.worker("checkpoints verify job");
        assert!(matches!(verified.code(), Some(0 | 5)), "kill {moment}: {}\n{}", verified.out, verified.err);
    }
    // How far the killed runs came depends on the machine; the end is a little further.
    let newest = place.worker("checkpoints ls job --output quiet").out;
    let steps = newest.lines().next().map_or(0, |step| step.parse::<u64>().unwrap()) + 20;
    place.train("--workers 2 --job-dir job", &format!("--steps={steps}")).good();
    place.train("--job-dir whole", &format!("--steps={steps}")).good();
    assert_eq!(place.digest("job"), place.digest("whole"));
    // What the killed saves had begun is gone; only the last step is sure to be saved.
    let before: u64 = place.worker("checkpoints ls job --output quiet").good().lines().nth(1).unwrap().parse().unwrap();
    let names = place.names("job/train");
    let expected = ["checkpoint", "lineage.json"].into_iter().map(str::to_owned);
    let of = |step: u64| {
        ["g1.model.safetensors", "g1.state.safetensors", "json"].map(|end| format!("translate.ckpt-{step}.{end}"))
    };
    let mut expected: Vec<String> = expected.chain(of(before)).chain(of(steps)).collect();
    expected.sort();
    assert_eq!(names, expected);
}

/// CKP-01: the kernel ends the writer at a known byte of the model file (SIGXFSZ).
#[test]
fn a_writer_that_dies_inside_a_file_or_before_the_manifest_leaves_the_older_checkpoint_the_newest() {
    let place = Place::with_pairs(90, 4).flags("--size=64");
    place.train("--job-dir job", "--steps=20").good();
    let model = std::fs::metadata(place.file("job/train/translate.ckpt-20.g1.model.safetensors")).unwrap().len();
    let newest = || place.worker("checkpoints verify job --output quiet").good();
    for percent in [10, 50, 99] {
        let limit = format!("--fsize={}", model * percent / 100);
        let ended = place.train_within(&limit, "--job-dir job", "--steps=40");
        assert!(ended.bad(1).contains("ended first, with signal 25"), "{percent} %: {}", ended.err);
        assert_eq!(newest(), "20\n", "{percent} %");
    }
    place.train("--job-dir job", "--steps=40").good();
    assert_eq!(newest(), "40\n20\n");
    std::fs::remove_file(place.file("job/train/translate.ckpt-40.json")).unwrap();
    assert_eq!(newest(), "20\n");
    let resumed = place.train("--job-dir job", "--steps=40").good();
    assert!(resumed.contains("left alone: translate.ckpt-40.g1.model.safetensors and 1 more"), "{resumed}");
    assert!(resumed.contains("resuming at step 20"), "{resumed}");
    place.train("--job-dir whole", "--steps=40").good();
    assert_eq!(place.digest("job"), place.digest("whole"));
    assert!(!place.names("job/train").iter().any(|name| name.contains('#')), "{:?}", place.names("job/train"));
}

#[test]
fn while_the_store_refuses_writes_nothing_old_is_deleted_and_training_goes_on() {
    let place = Place::with_pairs(90, 4).flags("--steps_per_checkpoint=50 --keep_checkpoints=2 --eval_pairs=1");
    let (train, aside) = (place.file("job/train"), place.file("job/aside"));
    let mut run = place.start("--job-dir job", "--steps=3000");
    run.wait_for("global step 200 ");
    std::fs::rename(&train, &aside).unwrap();
    // A file in the folder's place: every write fails, whoever asks.
    std::fs::write(&train, "in the way").unwrap();
    for _ in 0..3 {
        run.wait_for("was not saved");
    }
    let old = place.worker("checkpoints verify job/aside --output quiet");
    assert_eq!(old.good().lines().count(), 2, "{}", old.out);
    std::fs::remove_file(&train).unwrap();
    std::fs::rename(&aside, &train).unwrap();
    let ended = run.wait();
    assert!(ended.good().contains("global step 3000 "));
    place.worker("checkpoints verify job").good();
    place.train("--job-dir whole", "--steps=3000 --steps_per_checkpoint=50").good();
    assert_eq!(place.digest("job"), place.digest("whole"));
}
