//! What may change between a run and its resumption, and what may not.

use coord_tests::local::Place;
use rustix::process::Signal;

#[test]
fn other_vocabularies_or_layers_are_refused_with_saved_and_given_side_by_side() {
    let place = Place::with_pairs(300, 10).flags("--from_vocab_size=500 --to_vocab_size=500");
    place.train("--job-dir job", "--steps=20").good();
    let digest = place.digest("job");

    let larger = place.train("--job-dir job", "--steps=40 --from_vocab_size=520");
    assert!(larger.bad(1).contains("from_vocab_size: saved 500, given 520"), "{}", larger.err);
    let size = place.train("--job-dir job", "--steps=40 --size=24");
    assert!(size.bad(1).contains("size: saved 16, given 24"), "{}", size.err);
    assert!(size.err.contains("--fresh"), "{}", size.err);

    let vocabulary = place.read("job/data/vocab500.from");
    let (first, mut rest): (Vec<&str>, Vec<&str>) =
        (vocabulary.lines().take(4).collect(), vocabulary.lines().skip(4).collect());
    rest.reverse();
    let swapped: String = first.iter().chain(&rest).map(|word| format!("{word}\n")).collect();
    place.write("job/data/vocab500.from", &swapped);
    // Not even a run of its own may use it by chance.
    let other = place.train("--job-dir job", "--steps=40");
    assert!(other.bad(1).contains("is not a vocabulary of train.a"), "{}", other.err);
    let kept = place.train("--job-dir job", "--steps=40 --keep_vocabulary");
    assert!(kept.bad(1).contains("source_vocabulary: saved \""), "{}", kept.err);
    assert!(!kept.out.contains("global step"), "{}", kept.out);
    let decoded = place.decode("job/train", b"hello\n");
    assert!(decoded.bad(1).contains("the checkpoint was trained with"), "{}", decoded.err);

    place.write("job/data/vocab500.from", vocabulary);
    assert_eq!(place.digest("job"), digest);
    place.train("--job-dir job", "--steps=40").good();
}

#[test]
fn more_steps_go_on_with_each_change_logged_and_fewer_end_at_once() {
    let place = Place::with_pairs(100, 10);
    place.train("--job-dir job", "--steps=100").good();
    let longer = place.train("--job-dir job", "--steps=150 --learning_rate=0.25").good();
    assert!(longer.contains("resuming at step 100"), "{longer}");
    assert!(longer.contains("changed on resume: steps: saved 100, given 150"), "{longer}");
    assert!(longer.contains("changed on resume: learning_rate: saved 0.5, given 0.25"), "{longer}");
    assert!(longer.contains("global step 120 learning rate 0.2500") && longer.contains("global step 150 "), "{longer}");
    let digest = place.digest("job");
    let shorter = place.train("--job-dir job", "--steps=80 --learning_rate=0.25").good();
    assert!(shorter.contains("already at 150"), "{shorter}");
    assert!(!shorter.contains("global step"), "{shorter}");
    assert_eq!(place.digest("job"), digest);
}

#[test]
fn an_end_inside_an_interval_does_not_change_the_bits_of_what_follows() {
    let place = Place::with_pairs(100, 10);
    place.train("--job-dir whole", "--steps=100").good();
    for steps in [7, 33, 100] {
        place.train("--job-dir parts", &format!("--steps={steps}")).good();
    }
    assert_eq!(place.digest("parts"), place.digest("whole"));
}

#[test]
fn a_fresh_run_leaves_an_older_run_alone_and_is_the_one_that_answers() {
    let place = Place::with_pairs(100, 10).flags("--keep_checkpoints=2");
    place.train("--job-dir job", "--steps=4000 --steps_per_checkpoint=4000").good();
    place.train("--job-dir job", "--steps=4400 --steps_per_checkpoint=400").good();
    let fresh = place.train("--job-dir job --fresh", "--steps=25 --steps_per_checkpoint=25 --seed=7").good();
    for steps in [50, 75] {
        place.train("--job-dir job", &format!("--steps={steps} --steps_per_checkpoint=25 --seed=7")).good();
    }
    assert!(fresh.contains("starting at step 0: --fresh was given"), "{fresh}");
    assert_eq!(place.worker("checkpoints ls job --output quiet").good(), "4400\n4000\n75\n50\n");
    place.worker("checkpoints verify job").good();

    let alone = Place::with_pairs(100, 10);
    alone.train("--job-dir job", "--steps=75 --steps_per_checkpoint=25 --seed=7").good();
    assert_eq!(place.digest("job"), alone.digest("job"));
    let answer = place.worker("answer job").good();
    assert!(answer.contains("\"step\":75"), "{answer}");
    let on = place.train("--job-dir job", "--steps=100 --steps_per_checkpoint=25 --seed=7").good();
    assert!(on.contains("resuming at step 75"), "{on}");
}

#[test]
fn of_two_runs_that_start_in_one_folder_before_either_saves_only_the_later_one_saves() {
    let place = Place::with_pairs(100, 10);
    let mut earlier = place.start("--job-dir job", "--steps=0 --steps_per_checkpoint=1000000");
    earlier.wait_for("starting at step 0: train_dir holds no checkpoint");
    let later = place.train("--job-dir job", "--steps=20 --steps_per_checkpoint=20 --seed=7").good();
    assert!(later.contains("starting at step 0: the run that began there last, of job local_"), "{later}");
    let digest = place.digest("job");
    earlier.signal(Signal::TERM);
    let ended = earlier.wait();
    assert!(ended.err.contains("was taken over by another run"), "{} {}", ended.out, ended.err);
    assert_eq!(place.digest("job"), digest);
}

#[test]
fn of_two_runs_that_resume_in_one_folder_only_the_later_one_goes_on() {
    let place = Place::with_pairs(100, 10);
    place.train("--job-dir job", "--steps=20 --steps_per_checkpoint=20").good();
    let mut earlier = place.start("--job-dir job", "--steps=0 --steps_per_checkpoint=20");
    earlier.wait_for("resuming at step 20");
    // One that has nothing to do leaves the folder to it.
    place.train("--job-dir job", "--steps=20").good();
    let mut later = place.start("--job-dir job", "--steps=0 --steps_per_checkpoint=20");
    later.wait_for("resuming at step ");
    let ended = earlier.wait();
    assert!(ended.err.contains("was taken over by another run, that of job local_"), "{} {}", ended.out, ended.err);
    later.signal(Signal::TERM);
    let went_on = later.wait();
    assert!(!went_on.out.contains("was not saved"), "{}", went_on.out);
    place.worker("checkpoints verify job").good();
}

#[test]
fn a_required_resume_needs_a_checkpoint_and_an_automatic_one_says_why_it_begins_at_step_0() {
    let place = Place::with_pairs(100, 10);
    let required = |folder: &str| {
        let ended = place.train(&format!("--job-dir {folder}"), "--steps=20 --resume=required");
        let error = ended.bad(1);
        assert!(error.contains("no checkpoint to resume from in file://"), "{error}");
        assert!(error.contains(&format!("{folder}/train")) && error.contains("--resume=required"), "{error}");
    };
    std::fs::create_dir_all(place.file("empty/train")).unwrap();
    required("empty");
    required("misspelt");
    std::fs::create_dir_all(place.file("half/train")).unwrap();
    place.write("half/train/translate.ckpt-20.g1.model.safetensors", "begun");
    required("half");

    let begun = place.train("--job-dir empty", "--steps=20").good();
    assert!(begun.contains("starting at step 0: train_dir holds no checkpoint"), "{begun}");
    let begun = place.train("--job-dir half", "--steps=20").good();
    assert!(begun.contains("starting at step 0: only uncommitted data lies in train_dir"), "{begun}");
    assert!(begun.contains("left alone: translate.ckpt-20.g1.model.safetensors: no manifest names it"), "{begun}");
    let resumed = place.train("--job-dir empty", "--steps=40 --resume=required").good();
    assert!(resumed.contains("resuming at step 20"), "{resumed}");
}
