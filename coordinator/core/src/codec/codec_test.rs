//! Golden bytes: what was ever written must be read for ever, and must mean the same.
//!
//! `COORD_ADD_GOLDEN=1` adds lines for samples that have none yet. Lines that are there are never rewritten.

use std::collections::BTreeMap;
use std::path::PathBuf;

use coord_common::exit_rule::{Cause, Exit};
use coord_common::{
    CheckpointRecord, Device, ExitReport, Fact, FactBody, Generation, Incarnation, JobId, JobSettings, JobSpec, Millis,
    NumericClass, Rank, Registration, ReplicaKey, RequestId, Step, WorkerId,
};

use super::*;
use crate::entry::{CancelBy, Command, Entry, PlaceJob, SubmitJob};
use crate::state::ClusterState;

fn job() -> JobId {
    JobId::parse("chat").expect("valid")
}

fn worker() -> WorkerId {
    WorkerId::parse("w1").expect("valid")
}

fn incarnation() -> Incarnation {
    Incarnation::parse("i1").expect("valid")
}

fn submit(id: &str, request: &str) -> Command {
    let mut settings = JobSettings::new(JobId::parse(id).expect("valid"), "translate");
    settings.workers = 1..=3;
    settings.args = vec![b"--size=1024".to_vec(), Vec::new(), vec![0xff]];
    settings.labels = BTreeMap::from([("b".into(), "2".into()), ("a".into(), "1".into())]);
    settings.priority = 7;
    settings.max_restarts = 1;
    let spec = Box::new(JobSpec::new(settings).expect("valid"));
    let request = RequestId::parse(request).expect("valid");
    Command::SubmitJob(SubmitJob { request, spec, storage: "s3://bucket/coord".into() })
}

fn record(step: u64, generation: u64) -> CheckpointRecord {
    CheckpointRecord {
        step: Step(step),
        generation: Generation(generation),
        manifest_url: format!("s3://bucket/coord/jobs/chat/train/translate.ckpt-{step}.json"),
        manifest_digest: "0a".into(),
        state_digest: "0b".into(),
        at: Millis(1_700_000_000_500),
    }
}

fn register(name: &str, slots: u32) -> Command {
    Command::RegisterWorker(Registration {
        worker: WorkerId::parse(name).expect("valid"),
        name: format!("{name}.example:/var/lib/coord"),
        incarnation: incarnation(),
        slots,
        device: Device::Cuda,
        numeric_class: NumericClass::new("c1"),
        version: "0.1.0".into(),
        host: "10.0.0.1".into(),
        alive: vec![ReplicaKey { job: job(), generation: Generation(1), rank: Rank(2) }],
        facts_acknowledged: 0,
    })
}

fn fact(sequence: u64, generation: u64, rank: u32, body: FactBody) -> Command {
    let key = ReplicaKey { job: job(), generation: Generation(generation), rank: Rank(rank) };
    Command::ReplicaFact { worker: worker(), incarnation: incarnation(), fact: Fact { sequence, key, body } }
}

fn exited(code: Option<i32>, signal: Option<i32>, cause: Cause) -> FactBody {
    FactBody::Exited(ExitReport {
        exit: Exit { code, signal, cause },
        message: "no space".into(),
        tail: "line\n".into(),
        last_step: Step(41),
        steps: None,
        loss: None,
        samples: 640,
    })
}

fn exited_with_a_gauge() -> FactBody {
    let exit = Exit { code: Some(0), signal: None, cause: Cause::Done };
    let known =
        ExitReport { exit, last_step: Step(41), steps: Some(Step(60)), loss: Some(2.5), ..ExitReport::default() };
    FactBody::Exited(known)
}

fn place(generation: u64) -> Command {
    let workers = vec![worker(), worker()];
    Command::PlaceJob(PlaceJob { job: job(), generation: Generation(generation), workers, secret: "secret".into() })
}

fn samples() -> Vec<(&'static str, Command)> {
    let begin = |restore| Command::BeginGeneration { job: job(), generation: Generation(1), restore };
    vec![
        ("submit_job", submit("chat", "r1")),
        ("cancel_job", Command::CancelJob { job: job(), by: CancelBy::TimeLimit }),
        ("delete_job", Command::DeleteJob { job: job() }),
        ("forget_jobs", Command::ForgetJobs { jobs: vec![job(), JobId::parse("b").expect("valid")] }),
        ("register_worker", register("w1", 4)),
        ("drain_worker", Command::DrainWorker { worker: worker(), incarnation: incarnation() }),
        (
            "lose_worker",
            Command::LoseWorker { worker: worker(), incarnation: incarnation(), reason: "silent for 60 s".into() },
        ),
        ("place_job", place(1)),
        ("begin_fresh", begin(None)),
        ("begin_restored", begin(Some(record(200, 1)))),
        ("fact_ready", fact(1, 1, 0, FactBody::Ready { endpoint: "10.0.0.1:4000".into() })),
        ("fact_running", fact(2, 1, 0, FactBody::Running { step: Step(201) })),
        ("fact_exited_with_a_gauge", fact(3, 1, 1, exited_with_a_gauge())),
        ("fact_exited", fact(3, 1, 1, exited(Some(7), None, Cause::UserError))),
        ("fact_checkpoint", fact(4, 1, 0, FactBody::Checkpoint(record(400, 1)))),
        ("fact_refused", fact(5, 1, 1, FactBody::Refused { reason: "read-only work directory".into() })),
    ]
}

/// A state in which every field of the snapshot is in use.
fn rich_state() -> ClusterState {
    let mut state = ClusterState::default();
    let cuda = |command| match command {
        Command::SubmitJob(submit) => {
            let mut settings = (**submit.spec).clone();
            settings.device = Device::Cuda;
            Command::SubmitJob(SubmitJob { spec: Box::new(JobSpec::new(settings).expect("valid")), ..submit })
        }
        other => other,
    };
    let lose = Command::LoseWorker {
        worker: WorkerId::parse("w2").expect("valid"),
        incarnation: incarnation(),
        reason: "silent for 60 s".into(),
    };
    let begin =
        |generation, restore| Command::BeginGeneration { job: job(), generation: Generation(generation), restore };
    let refused = FactBody::Refused { reason: "no space".into() };
    let ready = |port: u32| FactBody::Ready { endpoint: format!("10.0.0.1:{port}") };
    let history = vec![
        cuda(submit("chat", "r1")),
        submit("waits", "r2"),
        submit("gone", "r3"),
        Command::CancelJob { job: JobId::parse("gone").expect("valid"), by: CancelBy::User },
        Command::DeleteJob { job: JobId::parse("gone").expect("valid") },
        submit("cancelled", "r4"),
        Command::CancelJob { job: JobId::parse("cancelled").expect("valid"), by: CancelBy::User },
        register("w1", 4),
        register("w2", 1),
        lose,
        place(1),
        fact(1, 1, 0, refused),
        fact(2, 1, 1, exited(None, Some(15), Cause::Stopped)),
        place(2),
        fact(3, 2, 0, ready(1)),
        fact(4, 2, 1, ready(2)),
        begin(2, None),
        fact(5, 2, 0, FactBody::Running { step: Step(1) }),
        fact(6, 2, 1, FactBody::Running { step: Step(1) }),
        fact(7, 2, 0, FactBody::Checkpoint(record(40, 2))),
        fact(8, 2, 1, exited(Some(134), None, Cause::Unsaid)),
        fact(9, 2, 0, exited(None, Some(15), Cause::Stopped)),
        place(3),
        fact(10, 3, 0, ready(1)),
        fact(11, 3, 1, ready(2)),
        begin(3, Some(record(40, 2))),
        fact(12, 3, 0, FactBody::Running { step: Step(41) }),
        fact(13, 3, 1, FactBody::Running { step: Step(41) }),
        fact(14, 3, 1, exited(Some(139), None, Cause::Unsaid)),
    ];
    for (millis, command) in (1_700_000_000_000..).step_by(1_000).zip(history) {
        let applied = crate::apply(&mut state, Entry { at: Millis(millis), proposal: 0, command });
        assert!(!matches!(applied.reply, crate::Reply::Rejected(_)), "{applied:?}");
    }
    assert_eq!(crate::check(&state), Vec::new());
    state
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// Name and bytes of each golden line, after adding those that are missing if that was asked for.
fn golden(file: &str, present: &[(&str, Vec<u8>)]) -> BTreeMap<String, Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/golden").join(file);
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    if std::env::var_os("COORD_ADD_GOLDEN").is_some() {
        for (name, bytes) in present {
            if !text.lines().any(|line| line.starts_with(&format!("{name} "))) {
                text += &format!("{name} {}\n", hex(bytes));
            }
        }
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(&path, &text).expect("a writable file");
    }
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, bytes)| (name.to_owned(), unhex(bytes))).collect()
}

#[test]
fn every_command_has_the_golden_bytes_and_reads_them_back() {
    let entries: Vec<(&str, Entry)> = samples()
        .into_iter()
        .map(|(name, command)| (name, Entry { at: Millis(1_700_000_000_000), proposal: 9, command }))
        .collect();
    let present: Vec<(&str, Vec<u8>)> = entries.iter().map(|(name, entry)| (*name, encode_entry(entry))).collect();
    let golden = golden("entries.txt", &present);
    assert_eq!(golden.len(), entries.len(), "each sample has its line");
    for (name, entry) in entries {
        assert_eq!(hex(&encode_entry(&entry)), hex(&golden[name]), "{name}");
        assert_eq!(decode_entry(&golden[name]).expect("readable"), entry, "{name}");
    }
}

#[test]
fn every_golden_snapshot_is_read_as_a_sound_state_and_written_the_same() {
    let golden = golden("snapshots.txt", &[("rich_and_begun", encode_snapshot(&rich_state()))]);
    assert!(!golden.is_empty());
    for (name, bytes) in golden {
        let state = decode_snapshot(&bytes).expect("readable");
        assert_eq!(crate::check(&state), Vec::new(), "{name}");
        assert_eq!(hex(&encode_snapshot(&state)), hex(&bytes), "{name}");
    }
}

#[test]
fn a_snapshot_holds_every_field_of_the_state() {
    let state = rich_state();
    assert!(decode_snapshot(&encode_snapshot(&state)).expect("readable") == state);
}

#[test]
fn bytes_of_a_newer_program_and_damaged_ones_are_told_apart() {
    let newer = coord_proto::log::v1::Entry { version: 2, ..Default::default() };
    let error = decode_entry(&prost::Message::encode_to_vec(&newer)).expect_err("newer");
    assert_eq!(error.to_string(), "entry has version 2, this program reads 1");
    assert_eq!(error.code(), "newer_version");
    let unknown = coord_proto::log::v1::Entry { version: 1, ..Default::default() };
    assert!(matches!(decode_entry(&prost::Message::encode_to_vec(&unknown)), Err(CodecError::UnknownCommand)));
    assert_eq!(decode_entry(&[0xff]).expect_err("damaged").code(), "damaged");
    assert_eq!(decode_snapshot(&[0xff]).expect_err("damaged").code(), "damaged");
    assert!(matches!(decode_snapshot(&[]), Err(CodecError::Version { what: "snapshot", got: 0 })));
}
