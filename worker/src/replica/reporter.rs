//! What a replica tells its agent. Calls return at once; a thread of its own writes.

use std::io::Write;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use coord_common::convert::progress_to_wire;
use coord_common::progress::Progress;
use coord_proto::v1::replica_message::Message as Word;
use coord_proto::v1::{
    CheckpointRecord, ReplicaFinished, ReplicaListening, ReplicaMessage, ReplicaPulse, ReplicaStage, ReplicaStarted,
};

use super::pipe;
use crate::checkpoint::Saved;
use crate::translate::observer::Observer;

/// Gauges are dropped when so many messages wait; facts wait for room.
const QUEUE: usize = 256;

pub struct Reporter {
    queue: Mutex<Option<SyncSender<ReplicaMessage>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    stop: AtomicBool,
    started: AtomicBool,
    save_seconds: Mutex<f64>,
}

impl Reporter {
    pub fn new(socket: UnixStream) -> Self {
        let (sender, receiver) = sync_channel(QUEUE);
        let writer = std::thread::spawn(move || write(socket, &receiver));
        Self {
            queue: Mutex::new(Some(sender)),
            writer: Mutex::new(Some(writer)),
            stop: AtomicBool::new(false),
            started: AtomicBool::new(false),
            save_seconds: Mutex::new(0.0),
        }
    }

    fn sender(&self) -> Option<SyncSender<ReplicaMessage>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fact(&self, word: Word) {
        if let Some(sender) = self.sender() {
            // The writer ends only with the agent; then this process is about to end too.
            let _ = sender.send(ReplicaMessage { message: Some(word) });
        }
    }

    fn gauge(&self, word: Word) {
        if let Some(sender) = self.sender() {
            match sender.try_send(ReplicaMessage { message: Some(word) }) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        }
    }

    /// This process runs. False once the last word was said.
    pub fn pulse(&self) -> bool {
        self.gauge(Word::Pulse(ReplicaPulse {}));
        self.sender().is_some()
    }

    pub fn listening(&self, endpoint: String) {
        self.fact(Word::Listening(ReplicaListening { endpoint }));
    }

    /// The last message; returns when it has been written.
    pub fn finished(&self, cause: &str, message: &str) {
        self.fact(Word::Finished(ReplicaFinished {
            cause: cause.to_owned(),
            message: message.to_owned(),
            ..ReplicaFinished::default()
        }));
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A writer that panicked has said so; the exit status tells the rest.
            let _ = writer.join();
        }
    }

    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }
}

fn write(mut socket: UnixStream, queue: &Receiver<ReplicaMessage>) {
    while let Ok(message) = queue.recv() {
        if pipe::write(&mut socket, &message).is_err() {
            // The agent is gone; the thread that reads its orders ends this process.
            return;
        }
    }
}

impl Observer for Reporter {
    fn say(&self, line: &str) {
        // Whole lines at once, flushed: two threads never share a line, and nothing waits in a buffer.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    }

    fn stage(&self, text: &str) {
        self.gauge(Word::Stage(ReplicaStage { text: text.to_owned() }));
    }

    fn started(&self, step: u64, share: Range<u32>) {
        self.started.store(true, Ordering::SeqCst);
        self.stage("computing the first step");
        self.fact(Word::Started(ReplicaStarted {
            step,
            micro_batch_first: share.start.into(),
            micro_batch_end: share.end.into(),
        }));
    }

    fn progress(&self, mut progress: Progress) {
        progress.checkpoint_seconds = *self.save_seconds.lock().unwrap_or_else(PoisonError::into_inner);
        self.gauge(Word::Progress(progress_to_wire(&progress)));
    }

    fn saved(&self, saved: &Saved, took: Duration) {
        *self.save_seconds.lock().unwrap_or_else(PoisonError::into_inner) = took.as_secs_f64();
        self.fact(Word::Checkpoint(CheckpointRecord {
            step: saved.step,
            generation: saved.generation,
            manifest_url: saved.manifest_url.clone(),
            manifest_digest: saved.manifest_digest.clone(),
            state_digest: saved.state_digest.clone(),
            at_millis: u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default(),
        }));
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
