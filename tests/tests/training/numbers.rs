//! Learning rates and losses out of hand, patience, and the floor of the decay.

use coord_tests::local::Place;

#[test]
fn a_huge_learning_rate_neither_crashes_nor_commits_weights_that_are_not_finite() {
    let place = Place::with_pairs(50, 10);
    // The clipped gradient keeps every step finite, so that the run comes to its end.
    let out = place.train("--job-dir job", "--steps=500 --learning_rate=100").good();
    assert!(out.contains("global step 20 learning rate 100.0000"), "{out}");
    assert!(out.contains("perplexity inf"), "{out}");
    assert!(out.contains("global step 500 "), "{out}");
    // Verified and restored: `restore` refuses weights that are not finite.
    place.worker("checkpoints verify job").good();
    assert_eq!(place.decode("job/train", b"hello\n").good().lines().count(), 1);
}

#[test]
fn steps_without_finite_figures_are_skipped_counted_and_end_the_job_with_that_reason() {
    let place = Place::with_pairs(50, 10);
    for steps in [20, 40] {
        place.train("--job-dir job", &format!("--steps={steps}")).good();
    }
    let good = place.digest("job");
    let ended = place.train("--workers 2 --job-dir job", "--steps=500 --learning_rate=1e37 --max_bad_steps=5");
    let error = ended.bad(1);
    assert!(error.contains("5 steps in a row had a non-finite loss or gradient; the last was step "), "{error}");
    assert!(error.contains("lower --learning_rate"), "{error}");
    let skipped: Vec<String> =
        ended.out.lines().filter(|line| line.contains("was skipped: loss")).map(str::to_owned).collect();
    assert_eq!(skipped.len(), 5, "{}", ended.out);
    assert_eq!(place.worker("checkpoints ls job --output quiet").good(), "40\n20\n");
    assert_eq!(place.digest("job"), good);
}

#[test]
fn patience_ends_a_run_whose_development_loss_stands_still() {
    let place = Place::with_pairs(50, 10);
    // A rate too small to change a weight: the loss is the same each time.
    let flags = "--learning_rate=1e-30 --min_learning_rate=1e-31 --patience=2 --steps_per_checkpoint=5";
    let out = place.train("--workers 2 --job-dir job", flags).good();
    assert!(out.contains("development loss has not improved for 2 of 2 intervals"), "{out}");
    assert!(out.contains("stopping at step 15: 2 intervals without a better development loss"), "{out}");
    assert!(place.worker("checkpoints ls job --output quiet").good().starts_with("15\n"));
}

#[test]
fn the_decay_of_the_learning_rate_stops_at_its_floor() {
    let place = Place::with_pairs(50, 4);
    let flags = "--learning_rate=1 --learning_rate_decay_factor=0.1 --min_learning_rate=0.25 --steps_per_checkpoint=1";
    let out = place.train("--job-dir job", &format!("{flags} --steps=60 --eval_pairs=1")).good();
    let decays: Vec<&str> = out.lines().filter(|line| line.starts_with("learning rate decays")).collect();
    assert_eq!(decays, ["learning rate decays to 0.2500"], "{out}");
    assert!(out.contains("global step 60 learning rate 0.2500"), "{out}");
}
