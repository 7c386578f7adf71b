//! What an agent keeps of the output of programs that write as fast as they can (DST-20).

use std::path::Path;

use coord_common::ids::{Generation, JobId};
use coord_common::rank::{Rank, ReplicaKey};
use worker::agent::logs::Logs;
use worker::launch::{Exited, ReplicaEvent, Stream, spawn};

const LINES: usize = 200;
const WIDTH: usize = 10_000;

/// Alternates between the two streams; rank 2 dies in between.
fn script(rank: u32) -> String {
    let dies = if rank == 2 {
        format!("[ $i = {} ] && echo the disk is full >&2 && exit 9\n", LINES / 2)
    } else {
        String::new()
    };
    format!(
        "x=$(head -c {WIDTH} /dev/zero | tr '\\0' {rank})\ni=0\nwhile [ $i -lt {LINES} ]; do\n{dies}\
         echo \"out $i $x\"\necho \"err $i $x\" >&2\ni=$((i+1))\ndone\n"
    )
}

async fn run(rank: u32, logs: Logs) -> (Exited, String) {
    let key = ReplicaKey { job: JobId::parse("noisy").expect("a job id"), generation: Generation(1), rank: Rank(rank) };
    logs.begin(&key).expect("a log");
    let shell = Path::new("/bin/sh").to_owned();
    let mut launched = spawn(&shell, &["-c".into(), script(rank).into()], &[]).expect("a shell");
    loop {
        match launched.events.recv().await.expect("the end comes last") {
            ReplicaEvent::Line(stream, line) => {
                assert_ne!(stream, Stream::Platform);
                logs.append(&key, stream, &line);
            }
            ReplicaEvent::Exited(exited) => return (exited, logs.end(&key)),
            ReplicaEvent::Message(message) => panic!("a shell says nothing to its agent: {message:?}"),
        }
    }
}

#[tokio::test]
async fn lines_of_four_noisy_ranks_stay_whole_and_carry_rank_stream_and_time() {
    let folder = tempfile::tempdir().expect("a directory");
    let logs = Logs::new(folder.path()).expect("a directory for logs");
    let ranks: Vec<_> = (0..4).map(|rank| tokio::spawn(run(rank, logs.clone()))).collect();
    for (rank, task) in (0..).zip(ranks) {
        let (exited, tail) = task.await.expect("no panic");
        assert_eq!((exited.code, exited.signal), (Some(if rank == 2 { 9 } else { 0 }), None));
        assert_eq!(tail.contains("the disk is full\n"), rank == 2, "rank {rank}: {tail}");
        let name = if rank == 0 { "master-replica-0".to_owned() } else { format!("worker-replica-{rank}") };
        let stored = std::fs::read_to_string(folder.path().join(format!("logs/noisy/{name}/1.log"))).expect("a log");
        lines_are_whole(rank, &stored);
    }
}

/// SEQ-12: a program that could not get memory is not at fault in some unknown way. A SIGKILL is, unless the kernel
/// counts one for want of memory.
#[tokio::test]
async fn an_abort_after_a_failed_allocation_is_an_end_for_want_of_memory() {
    for (script, signal, out_of_memory) in [
        ("echo 'memory allocation of 4096 bytes failed' >&2; kill -ABRT $$", 6, true),
        ("echo 'memory allocation of 4096 bytes failed'; kill -ABRT $$", 6, false),
        ("kill -KILL $$", 9, false),
    ] {
        let shell = Path::new("/bin/sh").to_owned();
        let mut launched = spawn(&shell, &["-c".into(), script.into()], &[]).expect("a shell");
        let exited = loop {
            if let ReplicaEvent::Exited(exited) = launched.events.recv().await.expect("the end comes last") {
                break exited;
            }
        };
        assert_eq!(exited, Exited { code: None, signal: Some(signal), out_of_memory }, "{script}");
    }
}

fn lines_are_whole(rank: u32, stored: &str) {
    let payload = rank.to_string().repeat(WIDTH);
    let mut next = [0, 0];
    for line in stored.lines() {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        let [time, letter, text] = fields[..] else { panic!("rank {rank}: not three fields in {line}") };
        assert!(time.len() == "2026-01-02T03:04:05.678Z".len() && time.ends_with('Z'), "{time}");
        if text == "the disk is full" {
            assert_eq!((rank, letter), (2, "E"));
            continue;
        }
        let stream = usize::from(letter == "E");
        let word = ["out", "err"][stream];
        assert_eq!(text, format!("{word} {} {payload}", next[stream]), "rank {rank}");
        next[stream] += 1;
    }
    let expected = if rank == 2 { LINES / 2 } else { LINES };
    assert_eq!(next, [expected, expected], "rank {rank}");
}
