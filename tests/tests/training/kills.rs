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
