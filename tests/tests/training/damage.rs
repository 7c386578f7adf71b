//! Damaged, incomplete and foreign checkpoints: the newest whole one is used, and what was passed over is said.

use coord_tests::local::Place;
use serde_json::Value;

/// With a checkpoint at every 20th step: each is the last of a run, since one in the middle may give way to a newer one.
fn trained(steps: u64) -> Place {
    let place = Place::with_pairs(100, 20);
    for step in (20..=steps).step_by(20) {
        place.train("--job-dir job", &format!("--steps={step}")).good();
    }
    place
}

fn model_file(step: u64) -> String {
    format!("job/train/translate.ckpt-{step}.g1.model.safetensors")
}

fn cut(place: &Place, name: &str, bytes: usize) {
    let whole = std::fs::read(place.file(name)).unwrap();
    place.write(name, &whole[..bytes.min(whole.len())]);
}

#[test]
fn a_cut_or_deleted_newest_model_file_makes_decode_and_resume_use_the_older_one_and_say_so() {
    for deleted in [false, true] {
        let place = trained(40);
        let why = if deleted {
            std::fs::remove_file(place.file(&model_file(40))).unwrap();
            "is missing"
        } else {
            let bytes = std::fs::metadata(place.file(&model_file(40))).unwrap().len();
            cut(&place, &model_file(40), bytes as usize / 2);
            "bytes, the manifest says"
        };
        let decoded = place.decode("job/train", b"hello there\n");
        assert_eq!(decoded.good().lines().count(), 1);
        assert!(decoded.err.contains("passed over checkpoint of step 40"), "{}", decoded.err);
        assert!(decoded.err.contains(why) && decoded.err.contains("using step 20"), "{}", decoded.err);

        let listed = place.worker("checkpoints verify job");
        assert!(listed.bad(1).contains("1 of 2 checkpoints are not whole"), "{}", listed.err);

        let resumed = place.train("--job-dir job", "--steps=60").good();
        assert!(resumed.contains("passed over checkpoint of step 40"), "{resumed}");
        assert!(resumed.contains(why) && resumed.contains("resuming at step 20"), "{resumed}");
        let whole = trained(60);
        assert_eq!(place.digest("job"), whole.digest("job"));
    }
}

#[test]
fn with_no_whole_checkpoint_left_decode_answer_and_resume_end_with_one_clear_line() {
    let place = trained(40);
    cut(&place, &model_file(20), 100);
    cut(&place, &model_file(40), 0);
    let decoded = place.decode("job/train", b"hello\n");
    assert!(decoded.out.is_empty());
    let error = decoded.bad(1);
    assert_eq!(error.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{error}");
    assert!(error.contains("no complete checkpoint in") && error.contains("step 40") && error.contains("step 20"));

    let answer = place.worker("answer job");
    assert_eq!(answer.code(), Some(1));
    let said: Value = serde_json::from_str(&answer.out).unwrap();
    assert!(said["error"].as_str().unwrap().contains("no complete checkpoint"), "{said}");

    let resumed = place.train("--job-dir job", "--steps=60");
    assert!(resumed.bad(1).contains("is complete (passed over: step 40"), "{}", resumed.err);
    assert!(resumed.err.contains("--fresh"), "{}", resumed.err);
    assert!(place.train("--job-dir job --fresh", "--steps=20").good().contains("starting at step 0"));
}

#[test]
fn decode_of_an_empty_folder_ends_with_one_clear_line() {
    let place = Place::empty();
    let decoded = place.decode("nothing", b"hello\n");
    assert!(decoded.out.is_empty());
    assert!(decoded.bad(1).starts_with("error: no checkpoint in file://"), "{}", decoded.err);
    assert!(decoded.err.contains("answers never come from unset weights"), "{}", decoded.err);
}

#[test]
fn a_whole_checkpoint_with_a_tensor_of_the_wrong_shape_is_passed_over() {
    let place = trained(40);
    let other = Place::with_pairs(100, 20).flags("--size=17");
    other.train("--job-dir job", "--steps=60 --steps_per_checkpoint=60").good();
    for kind in ["model", "state"] {
        let name = format!("job/train/translate.ckpt-60.g1.{kind}.safetensors");
        std::fs::copy(other.file(&name), place.file(&name)).unwrap();
    }
    let manifest = |place: &Place, step: u64| -> Value {
        serde_json::from_str(&place.read(&format!("job/train/translate.ckpt-{step}.json"))).unwrap()
    };
    let (own, mut wrong) = (manifest(&place, 40), manifest(&other, 60));
    for field in ["lineage", "settings"] {
        wrong[field] = own[field].clone();
    }
    place.write("job/train/translate.ckpt-60.json", wrong.to_string());

    place.worker("checkpoints verify job").good();
    let decoded = place.decode("job/train", b"hello\n");
    assert!(decoded.good().ends_with('\n') && decoded.err.contains("using step 40"), "{}", decoded.err);
    let resumed = place.train("--job-dir job", "--steps=60").good();
    assert!(resumed.contains("passed over checkpoint of step 60") && resumed.contains("has shape"), "{resumed}");
    assert!(resumed.contains("resuming at step 40"), "{resumed}");
    assert_eq!(place.digest("job"), trained(60).digest("job"));
}

#[test]
fn the_newest_whole_checkpoint_follows_from_manifests_and_parts_alone() {
    let place = trained(80);
    std::fs::remove_file(place.file("job/train/checkpoint")).unwrap();
    cut(&place, &model_file(80), 0);
    cut(&place, &model_file(60).replace("model", "state"), 0);
    std::fs::remove_file(place.file(&model_file(40).replace("model", "state"))).unwrap();
    let resumed = place.train("--job-dir job", "--steps=80").good();
    let passed: Vec<&str> = resumed.lines().filter(|line| line.starts_with("passed over")).collect();
    assert_eq!(passed.len(), 3, "{resumed}");
    assert!(passed[0].contains("step 80") && passed[0].contains("has 0 bytes"), "{resumed}");
    assert!(passed[1].contains("step 60") && passed[1].contains("has 0 bytes"), "{resumed}");
    assert!(passed[2].contains("step 40") && passed[2].contains("is missing"), "{resumed}");
    assert!(resumed.contains("resuming at step 20"), "{resumed}");
    // Verified whole; that of a step between may have given way, and its broken one then lies there still.
    assert!(place.worker("checkpoints digest job").good().ends_with("step 80\n"));
    assert_eq!(place.digest("job"), trained(80).digest("job"));
}

#[test]
fn checkpoints_are_ordered_by_step_whatever_their_times_and_names_say() {
    let place = trained(20).flags("--keep_checkpoints=2");
    place.train("--job-dir job", "--steps=980 --steps_per_checkpoint=980").good();
    for steps in [990, 1000, 1010] {
        place.train("--job-dir job", &format!("--steps={steps} --steps_per_checkpoint=10")).good();
    }
    let kept = place.worker("checkpoints ls job --output quiet").good();
    assert_eq!(kept, "1010\n1000\n");

    // Copied anew in the opposite order, so that the newest step has the oldest time.
    for step in [1010, 1000] {
        for name in place.names("job/train").iter().filter(|name| name.contains(&format!("ckpt-{step}."))) {
            let file = place.file(&format!("job/train/{name}"));
            let copy = file.with_extension("copy");
            std::fs::copy(&file, &copy).unwrap();
            std::fs::rename(&copy, &file).unwrap();
        }
    }
    assert_eq!(place.worker("checkpoints ls job --output quiet").good(), kept);
    let resumed = place.train("--job-dir job", "--steps=1020 --steps_per_checkpoint=10").good();
    assert!(resumed.contains("resuming at step 1010"), "{resumed}");
    assert_eq!(place.worker("checkpoints ls job --output quiet").good(), "1020\n1010\n");
}

#[test]
fn one_flipped_byte_is_noticed() {
    let place = trained(40);
    place.worker("checkpoints verify job").good();
    let name = model_file(40);
    let mut bytes = std::fs::read(place.file(&name)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    place.write(&name, bytes);
    let verified = place.worker("checkpoints verify job");
    assert!(verified.out.contains("is damaged: its SHA-256 differs"), "{}", verified.out);
    assert_eq!(verified.code(), Some(1));
    let digest = place.worker("checkpoints digest job --at 40");
    assert!(digest.bad(1).contains("is damaged"), "{}", digest.err);
    let older = place.worker("checkpoints digest job");
    assert!(older.good().ends_with("step 20\n") && older.err.contains("passed over checkpoint of step 40"));
}
