//! Switches of the old program and of comparisons.

use coord_tests::local::Place;

#[test]
fn the_self_test_prints_its_line_and_touches_no_file() {
    let place = Place::empty();
    let ended = place.worker("local -- --self_test");
    assert_eq!(ended.good(), "Self-test for neural translation model.\n");
    assert_eq!((ended.err.as_str(), place.names(".")), ("", Vec::new()));
}

#[test]
fn the_old_behaviours_train_alike_on_any_number_of_workers() {
    let place = Place::with_pairs(100, 20).flags("--old_evaluation --attend_to_padding --draw_with_replacement");
    let one = place.train("--job-dir one", "--steps=40").good();
    assert_eq!(one.matches("  eval: ").count(), 8, "{one}");
    place.train("--workers 3 --job-dir three", "--steps=40").good();
    assert_eq!(place.digest("one"), place.digest("three"));
    let plain = Place::with_pairs(100, 20);
    plain.train("--job-dir plain", "--steps=40").good();
    assert_ne!(place.digest("one"), plain.digest("plain"));
    assert_eq!(place.decode("one/train", b"hello\n").good().lines().count(), 1);
}

#[test]
fn the_inputs_of_the_first_steps_are_written_for_a_peer_and_change_nothing() {
    let place = Place::with_pairs(100, 10);
    place.train("--workers 2 --job-dir job", "--steps=20 --dump_run=dump --dump_steps=7").good();
    let inputs = ["batches.jsonl", "config.json", "dev.jsonl", "gradient.safetensors", "negatives.jsonl"];
    let expected: Vec<&str> = inputs.into_iter().chain(["ours.jsonl", "params.safetensors"]).collect();
    assert_eq!(place.names("dump"), expected);
    for name in ["dump/batches.jsonl", "dump/negatives.jsonl", "dump/ours.jsonl"] {
        assert_eq!(place.read(name).lines().count(), 7);
    }
    let batches: serde_json::Value =
        serde_json::from_str(place.read("dump/batches.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(batches.as_array().unwrap().len(), 8, "one for each micro-batch");
    place.train("--job-dir plain", "--steps=20").good();
    assert_eq!(place.digest("job"), place.digest("plain"));

    let refused = place.train("--job-dir job", "--steps=20 --dump_run=s3://bucket/dump");
    assert!(refused.bad(2).contains("--dump_run must be a path on this machine"), "{}", refused.err);
}

#[test]
fn wrong_flags_are_refused_before_any_process_starts() {
    let place = Place::with_pairs(20, 5);
    let typo = place.train("--job-dir job", "--step=5");
    assert!(typo.bad(2).contains("unknown program flag --step; did you mean --steps?"), "{}", typo.err);
    let half = place.train("--job-dir job", "--use_fp16");
    assert!(half.bad(2).contains("training runs in 32 bits"), "{}", half.err);
    let many = place.train("--workers 9 --job-dir job", "--steps=5");
    assert!(many.bad(2).contains("9") && many.err.contains("--micro-batches"), "{}", many.err);
    assert!(place.names("job").is_empty());
}
