//! Checkpoints on a folder: commit, damage, retention, runs in one prefix.

use coord_io::storage::Storage;

use super::find::EARLIER_KEPT;
use super::*;

fn storage(name: &str) -> Storage {
    Storage::open(&format!("memory://checkpoint-{name}/train")).unwrap()
}

fn snapshot(step: u64, generation: u64, lineage: &str) -> Snapshot {
    Snapshot {
        prefix: "translate.ckpt".to_owned(),
        step,
        generation,
        lineage: lineage.to_owned(),
        run: "first".to_owned(),
        job: "job".to_owned(),
        numeric_class: "test".to_owned(),
        world_size: 1,
        settings: serde_json::Map::new(),
        model: vec![Tensor { name: "w".to_owned(), shape: vec![2], data: TensorData::F32(vec![step as f32, 2.0]) }],
        state: vec![Tensor::u64s("step", vec![step]), Tensor::f64s("rate", vec![0.5])],
    }
}

async fn write(storage: &Storage, step: u64, generation: u64) -> Saved {
    save(storage, &snapshot(step, generation, "run"), "2026-01-01T00:00:00Z".to_owned()).await.unwrap()
}

async fn newest(storage: &Storage) -> (Option<u64>, Vec<(u64, String)>) {
    let (found, rejected) = Checkpoints::new(storage.clone()).newest(&Search::default(), |_| Ok(())).await.unwrap();
    (found.map(|found| found.manifest.step), rejected.into_iter().map(|one| (one.step, one.why)).collect())
}

#[tokio::test]
async fn what_was_saved_is_read_back_with_the_same_digest() {
    let storage = storage("roundtrip");
    let saved = write(&storage, 20, 1).await;
    let found = Checkpoints::new(storage).load("translate.ckpt-20.json").await.unwrap();
    assert_eq!(found.manifest.state_digest, saved.state_digest);
    assert_eq!(found.manifest_digest, saved.manifest_digest);
    assert_eq!(found.tensors.len(), 3);
}

/// The digest knows step and weights, not generation, time or job.
#[tokio::test]
async fn the_digest_ignores_generation_and_time() {
    let storage = storage("digest");
    let first = write(&storage, 20, 1).await;
    let other = self::storage("digest-other");
    let second = save(&other, &snapshot(20, 9, "x"), "2030-01-01T00:00:00Z".to_owned()).await.unwrap();
    assert_eq!(first.state_digest, second.state_digest);
    assert_ne!(first.state_digest, write(&other, 21, 9).await.state_digest);
}

/// CKP-04: missing parts, empty parts and a deleted pointer; the reasons for the others are given.
#[tokio::test]
async fn a_checkpoint_with_a_missing_or_empty_file_is_passed_over_with_the_reason() {
    let storage = storage("damage");
    for step in [10, 20, 30] {
        write(&storage, step, 1).await;
    }
    storage.delete("checkpoint").await.unwrap();
    storage.put("translate.ckpt-30.g1.model.safetensors", "").await.unwrap();
    storage.delete("translate.ckpt-20.g1.state.safetensors").await.unwrap();
    let (step, rejected) = newest(&storage).await;
    assert_eq!(step, Some(10));
    assert_eq!(rejected[0].0, 30);
    assert!(rejected[0].1.starts_with("translate.ckpt-30.g1.model.safetensors has 0 bytes, the manifest says"));
    assert_eq!(rejected[1], (20, "translate.ckpt-20.g1.state.safetensors is missing".to_owned()));
}

/// CKP-04: of the older program's four parts one was removed. Any number of parts is read; each must be there.
#[tokio::test]
async fn of_four_parts_each_one_must_be_there() {
    let storage = storage("parts");
    write(&storage, 10, 1).await;
    write(&storage, 20, 1).await;
    // The model of step 20 in three files instead of one.
    let name = "translate.ckpt-20.json";
    let (mut manifest, _) = Checkpoints::new(storage.clone()).manifest(name).await.unwrap();
    let model = Tensor { name: "w".to_owned(), shape: vec![2], data: TensorData::F32(vec![20.0, 2.0]) };
    let parts = [vec![model], vec![], vec![]];
    manifest.files.remove(0);
    for (number, tensors) in parts.iter().enumerate() {
        let (name, bytes) = (format!("translate.ckpt-20.g1.part{number}.safetensors"), encode(tensors));
        manifest.files.push(FileEntry {
            name: name.clone(),
            bytes: bytes.len() as u64,
            sha256: super::digest::sha256(&bytes),
        });
        storage.put(&name, bytes).await.unwrap();
    }
    storage.put(name, manifest.encode()).await.unwrap();
    assert_eq!(newest(&storage).await, (Some(20), vec![]));
    storage.delete("translate.ckpt-20.g1.part2.safetensors").await.unwrap();
    let missing = "translate.ckpt-20.g1.part2.safetensors is missing".to_owned();
    assert_eq!(newest(&storage).await, (Some(10), vec![(20, missing)]));
}

#[tokio::test]
async fn a_manifest_that_is_not_its_own_is_passed_over() {
    let storage = storage("manifest");
    write(&storage, 10, 1).await;
    write(&storage, 20, 1).await;
    let good = Checkpoints::new(storage.clone()).manifest("translate.ckpt-20.json").await.unwrap().0;
    let renamed = |files: &[&str]| {
        let entry = |name: &&str| FileEntry { name: (*name).to_owned(), ..good.files[0].clone() };
        Manifest { files: files.iter().map(entry).collect(), ..good.clone() }
    };
    let part = "translate.ckpt-20.g1.model.safetensors";
    for (manifest, why) in [
        (Manifest { step: 21, ..good.clone() }, "the manifest calls itself translate.ckpt-21.json".to_owned()),
        (renamed(&[]), "the manifest names no files".to_owned()),
        (renamed(&[part, part]), format!("the manifest names {part} twice")),
        (renamed(&["../x"]), "the manifest names \"../x\", which is no file of translate.ckpt".to_owned()),
        (
            renamed(&["lineage.json"]),
            "the manifest names \"lineage.json\", which is no file of translate.ckpt".to_owned(),
        ),
    ] {
        storage.put("translate.ckpt-20.json", manifest.encode()).await.unwrap();
        assert_eq!(newest(&storage).await, (Some(10), vec![(20, why)]));
    }
}

#[tokio::test]
async fn one_flipped_byte_is_found() {
    let storage = storage("flip");
    write(&storage, 10, 1).await;
    let name = "translate.ckpt-10.g1.model.safetensors";
    let mut bytes = storage.get(name).await.unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    storage.put(name, bytes).await.unwrap();
    let (step, rejected) = newest(&storage).await;
    assert_eq!(step, None);
    assert_eq!(rejected[0].1, format!("{name} is damaged: its SHA-256 differs from the manifest's"));
}

/// CKP-15: order is the step number, not text: 1000 comes after 990.
#[tokio::test]
async fn the_newest_is_the_largest_step_and_retention_keeps_the_newest() {
    let storage = storage("order");
    for step in [1010, 980, 1000, 990] {
        write(&storage, step, 1).await;
    }
    assert_eq!(newest(&storage).await.0, Some(1010));
    let retention = Retention {
        prefix: "translate.ckpt".to_owned(),
        lineage: "run".to_owned(),
        run: "first".to_owned(),
        keep: 2,
        recorded: None,
        generation: 1,
    };
    assert_eq!(retention.apply(&storage).await.unwrap(), [1000, 1010]);
    let pointer = storage.get("checkpoint").await.unwrap();
    assert_eq!(
        pointer,
        "model_checkpoint_path: \"translate.ckpt-1010\"\n\
         all_model_checkpoint_paths: \"translate.ckpt-1000\"\n\
         all_model_checkpoint_paths: \"translate.ckpt-1010\"\n"
    );
    assert_eq!(storage.list("").await.unwrap().len(), 7);
}

#[tokio::test]
async fn retention_deletes_nothing_at_or_after_the_newest_recorded_one() {
    let storage = storage("recorded");
    for step in [10, 20, 30, 40] {
        write(&storage, step, 1).await;
    }
    let retention = Retention {
        prefix: "translate.ckpt".to_owned(),
        lineage: "run".to_owned(),
        run: "first".to_owned(),
        keep: 1,
        recorded: Some(20),
        generation: 1,
    };
    assert_eq!(retention.apply(&storage).await.unwrap(), [20, 30, 40]);
}

/// CKP-17: retention looks only at its own run.
#[tokio::test]
async fn retention_leaves_other_runs_alone() {
    let storage = storage("runs");
    for step in [4000, 4400] {
        save(&storage, &snapshot(step, 1, "old"), String::new()).await.unwrap();
    }
    write(&storage, 25, 1).await;
    let retention = Retention {
        prefix: "translate.ckpt".to_owned(),
        lineage: "run".to_owned(),
        run: "first".to_owned(),
        keep: 2,
        recorded: None,
        generation: 1,
    };
    assert_eq!(retention.apply(&storage).await.unwrap(), [25]);
    let search = Search { lineage: Some("run".to_owned()), step: None };
    let (found, _) = Checkpoints::new(storage.clone()).newest(&search, |_| Ok(())).await.unwrap();
    assert_eq!(found.unwrap().manifest.step, 25);
    assert_eq!(newest(&storage).await.0, Some(4400));
}

/// CKP-01: data files without a manifest are no checkpoint, and are swept by a later generation only.
#[tokio::test]
async fn data_without_a_manifest_is_a_leftover_that_a_later_generation_removes() {
    let storage = storage("leftover");
    write(&storage, 10, 1).await;
    storage.put("translate.ckpt-20.g1.model.safetensors", "half").await.unwrap();
    assert_eq!(newest(&storage).await, (Some(10), vec![]));
    let uncommitted = Checkpoints::new(storage.clone()).uncommitted().await.unwrap();
    assert_eq!(uncommitted, ["translate.ckpt-20.g1.model.safetensors"]);
    let mut retention = Retention {
        prefix: "translate.ckpt".to_owned(),
        lineage: "run".to_owned(),
        run: "first".to_owned(),
        keep: 5,
        recorded: None,
        generation: 1,
    };
    retention.apply(&storage).await.unwrap();
    assert!(storage.size("translate.ckpt-20.g1.model.safetensors").await.unwrap().is_some());
    retention.generation = 2;
    retention.apply(&storage).await.unwrap();
    assert!(storage.size("translate.ckpt-20.g1.model.safetensors").await.unwrap().is_none());
    assert_eq!(newest(&storage).await.0, Some(10));
}

#[tokio::test]
async fn the_same_step_saved_again_by_a_later_generation_stands_once() {
    let storage = storage("again");
    let first = write(&storage, 10, 1).await;
    let second = write(&storage, 10, 2).await;
    assert_eq!(second.generation, 1, "the first commit stands");
    assert_eq!(first.manifest_digest, second.manifest_digest);
    // A broken one is replaced.
    storage.delete("translate.ckpt-10.g1.model.safetensors").await.unwrap();
    let third = write(&storage, 10, 3).await;
    assert_eq!(third.generation, 3);
    assert_eq!(newest(&storage).await.0, Some(10));
}

#[test]
fn only_manifest_names_are_read_as_manifests() {
    assert_eq!(parse_manifest_name("translate.ckpt-200.json"), Some(("translate.ckpt", 200)));
    assert_eq!(parse_manifest_name("translate.ckpt-0200.json"), None);
    assert_eq!(parse_manifest_name("result.json"), None);
    assert_eq!(parse_manifest_name("below/translate.ckpt-200.json"), None);
    assert_eq!(parse_manifest_name("notes-3.json"), None);
}

#[tokio::test]
async fn a_run_whose_folder_was_taken_over_commits_nothing_more() {
    let storage = storage("taken");
    let checkpoints = Checkpoints::new(storage.clone());
    let take = async |lineage: &str, run: &str| {
        let before = checkpoints.lineage().await.unwrap();
        let taken = Lineage::taken(lineage.to_owned(), "job_of_it", run, before);
        checkpoints.take(&taken).await.unwrap();
        taken.earlier
    };
    assert_eq!(take("run", "first").await, [""; 0]);
    write(&storage, 10, 1).await;
    // One that begins anew, then one that resumes what is there.
    for (lineage, run) in [("other", "second"), ("run", "third")] {
        take(lineage, run).await;
        let error = save(&storage, &snapshot(20, 1, "run"), String::new()).await.unwrap_err();
        assert!(error.to_string().ends_with("was taken over by another run, that of job job_of_it"), "{error}");
        storage.put("translate.ckpt-30.g1.model.safetensors", "begun by the other").await.unwrap();
        let retention = Retention {
            prefix: "translate.ckpt".to_owned(),
            lineage: "run".to_owned(),
            run: "first".to_owned(),
            keep: 1,
            recorded: None,
            generation: 5,
        };
        assert!(retention.apply(&storage).await.is_err());
        assert!(storage.size("translate.ckpt-30.g1.model.safetensors").await.unwrap().is_some());
        assert_eq!(newest(&storage).await, (Some(10), vec![]));
    }
    assert_eq!(take("new", "third").await, ["first", "second"], "a run does not take its own folder from itself");
    for run in 0..EARLIER_KEPT {
        take("run", &run.to_string()).await;
    }
    assert_eq!(take("run", "last").await.len(), EARLIER_KEPT);
}
