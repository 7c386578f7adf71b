//! Storage that says no, and two writers of one object.

use coord_io::storage::Created;
use coord_tests::cluster::{Cluster, Layout, SeaweedFs};

/// JOB-10: the four cases end before the first step, each with its own message, and none of them tells a secret.
#[test]
fn four_kinds_of_refusing_storage_give_four_messages_before_the_first_step() {
    let folder = tempfile::tempdir().expect("a directory");
    let store = SeaweedFs::start(folder.path());
    let environment = store.environment_without_key();
    let cluster = Cluster::start(Layout { environment, ..Layout::workers(&[1]) });
    let program = cluster.dialogues().flags(20);
    let train = |job_dir: &str, environment: &[(String, String)]| {
        let mut words = vec!["local", "train", "--job-dir", job_dir, "--"];
        words.extend(program.iter().map(String::as_str));
        let ended = cluster.follow_with(&words, environment).end();
        assert!(!ended.stdout.contains("global step"), "{ended}");
        assert!(!ended.stderr.contains("secret-of"), "a secret was told: {ended}");
        ended
    };
    let place = store.url("refused");
    train(&place, &store.environment_of("reader"))
        .refused(1, &["error: write ", &place, "permission denied", "(HTTP 403)", "access key reader", "hint: "]);
    train(&place, &store.environment_of("stranger"))
        .refused(1, &[&place, "denied", "403", "access key stranger", "hint: "]);
    train("s3://no-such-bucket/x", &store.environment())
        .refused(1, &["s3://no-such-bucket/x", "not found", "(HTTP 404)", "creates no buckets"]);
    train(&place, &[]).refused(1, &[&place, "no valid credentials", "AWS_ACCESS_KEY_ID", "hint: "]);

    // The same through a cluster whose agents have no key.
    cluster.submit("keyless", &["--job-dir", &place], &program);
    assert_eq!(cluster.wait("keyless").status, Some(1));
    let failure = &cluster.describe("keyless")["failure"];
    assert_eq!(failure["cause"], "storage", "{failure:#}");
    assert!(failure["text"].as_str().is_some_and(|text| text.contains("no valid credentials")), "{failure:#}");
}

/// CKP-09, on a store with conditional writes.
#[test]
fn of_two_writers_of_one_manifest_exactly_one_wins() {
    const ROUNDS: usize = 20;
    let folder = tempfile::tempdir().expect("a directory");
    let store = SeaweedFs::start(folder.path());
    let race = store.open("race");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for round in 0..ROUNDS {
        let name = format!("translate.ckpt-{round}.json");
        let won: Vec<String> = runtime.block_on(async {
            let writers: Vec<_> = ["this", "that"]
                .map(|writer| {
                    let (race, name) = (race.clone(), name.clone());
                    tokio::spawn(async move { (writer, race.create(&name, writer.as_bytes().to_vec()).await) })
                })
                .into_iter()
                .collect();
            let mut won = Vec::new();
            for writer in writers {
                let (writer, created) = writer.await.expect("no panic");
                if created.expect("the store answers") == Created::Yes {
                    won.push(writer.to_owned());
                }
            }
            won
        });
        let stored = runtime.block_on(race.get(&name)).expect("it is there");
        assert_eq!(won.len(), 1, "round {round}");
        assert_eq!(stored, won[0].as_bytes(), "round {round}");
    }
}
