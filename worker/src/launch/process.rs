//! One child process: its own process group, a socket as standard input, captured output.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coord_common::exit_rule::{SIGABRT, SIGKILL};
use coord_proto::v1::{ReplicaMessage, ReplicaOrder};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::output::{Stream, capture};
use crate::memory::{self, Kills};
use crate::replica::pipe;

/// Output that a dead child's own children still hold open is waited for so long.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);
const QUEUE: usize = 1024;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exited {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// It asked for more memory than there was, or was killed while the kernel killed for want of memory.
    pub out_of_memory: bool,
}

impl Exited {
    /// `refused` says that the child itself named a failed allocation.
    fn new(status: ExitStatus, refused: bool) -> Self {
        let signal = status.signal();
        let out_of_memory = match signal {
            Some(SIGABRT) => refused,
            Some(SIGKILL) => kills().explain(memory::kills()),
            _ => false,
        };
        Self { code: status.code(), signal, out_of_memory }
    }
}

/// One account for all children of this process, as the kernel has one counter.
fn kills() -> MutexGuard<'static, Kills> {
    static KILLS: Mutex<Kills> = Mutex::new(Kills::new());
    KILLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a Rust program writes before it aborts.
fn is_failed_allocation(line: &[u8]) -> bool {
    line.starts_with(b"memory allocation of ") && line.ends_with(b" bytes failed")
}

/// What is heard of a running child, in order; [`ReplicaEvent::Exited`] is the last.
#[derive(Debug)]
pub enum ReplicaEvent {
    Message(ReplicaMessage),
    Line(Stream, Vec<u8>),
    Exited(Exited),
}

/// Handles of a running child.
#[derive(Debug)]
pub struct Launched {
    pub pid: u32,
    /// Dropping it closes the child's socket, which ends a replica within a second.
    pub orders: mpsc::Sender<ReplicaOrder>,
    pub events: mpsc::Receiver<ReplicaEvent>,
}

/// Starts `program`. Must be called inside a tokio runtime.
pub fn spawn(program: &PathBuf, args: &[OsString], environment: &[(String, String)]) -> io::Result<Launched> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let socket = UnixStream::from_std(ours)?;
    kills().forget(memory::kills());
    let mut child = Command::new(program)
        .args(args)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let pid = child.id().ok_or_else(|| io::Error::other("the child has no process id"))?;
    let (order_sender, orders) = mpsc::channel(QUEUE);
    let (event_sender, events) = mpsc::channel(QUEUE);
    let (read_half, write_half) = socket.into_split();
    tokio::spawn(write_orders(write_half, orders));
    let (line_sender, lines) = mpsc::channel(QUEUE);
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the child has no standard output"))?;
    let stderr = child.stderr.take().ok_or_else(|| io::Error::other("the child has no standard error"))?;
    tokio::spawn(capture(stdout, Stream::Output, line_sender.clone()));
    tokio::spawn(capture(stderr, Stream::Error, line_sender));
    tokio::spawn(follow(child, read_half, lines, event_sender));
    Ok(Launched { pid, orders: order_sender, events })
}

async fn write_orders(mut socket: tokio::net::unix::OwnedWriteHalf, mut orders: mpsc::Receiver<ReplicaOrder>) {
    while let Some(order) = orders.recv().await {
        if socket.write_all(&pipe::encode(&order)).await.is_err() {
            return;
        }
    }
}

async fn follow(
    mut child: Child,
    mut socket: tokio::net::unix::OwnedReadHalf,
    mut lines: mpsc::Receiver<(Stream, Vec<u8>)>,
    events: mpsc::Sender<ReplicaEvent>,
) {
    let messages = {
        let events = events.clone();
        tokio::spawn(async move {
            while let Ok(Some(message)) = pipe::read_async::<ReplicaMessage>(&mut socket).await {
                if events.send(ReplicaEvent::Message(message)).await.is_err() {
                    return;
                }
            }
        })
    };
    let refused = Arc::new(AtomicBool::new(false));
    let output = {
        let (events, refused) = (events.clone(), refused.clone());
        tokio::spawn(async move {
            while let Some((stream, line)) = lines.recv().await {
                if stream == Stream::Error && is_failed_allocation(&line) {
                    refused.store(true, Ordering::Relaxed);
                }
                if events.send(ReplicaEvent::Line(stream, line)).await.is_err() {
                    return;
                }
            }
        })
    };
    let status = child.wait().await;
    // Its last words come before its end. A grandchild that holds the pipes open does not hold up the report.
    let _ = tokio::time::timeout(OUTPUT_GRACE, async { tokio::join!(messages, output) }).await;
    let exited = match status {
        Ok(status) => Exited::new(status, refused.load(Ordering::Relaxed)),
        Err(error) => {
            tracing::warn!(%error, "wait for a replica");
            Exited { code: None, signal: None, out_of_memory: false }
        }
    };
    // The receiver may be gone with the whole agent.
    let _ = events.send(ReplicaEvent::Exited(exited)).await;
}

/// Signals the child's whole process group; one that is gone already is no error.
pub fn signal_group(pid: u32, signal: Signal) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    if let Err(error) = kill_process_group(pid, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(%error, pid = pid.as_raw_nonzero().get(), "signal a replica");
    }
}
