//! Questions to agents that are answered over their stream: numbered, each with a deadline.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coord_common::WorkerId;
use coord_proto::v1::leader_message::Message;
use coord_proto::v1::{Answer, Ask, LeaderMessage, LogData, ReadLog};
use thiserror::Error;
use tokio::sync::oneshot;

use super::agents::Outgoing;

const READ_LOG_DEADLINE: Duration = Duration::from_secs(5);
/// The first question may have to load a model.
const ASK_DEADLINE: Duration = Duration::from_secs(260);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("worker {0} is not connected")]
    NotConnected(WorkerId),
    #[error("worker {worker} did not answer within {seconds} s")]
    Deadline { worker: WorkerId, seconds: u64 },
}

pub enum Answered {
    Log(LogData),
    Answer(Answer),
}

/// Requests on the way, by number. Bounded by the callers: each has one at a time.
#[derive(Default)]
pub struct Requests {
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    last: u64,
    waiters: HashMap<u64, oneshot::Sender<Answered>>,
}

impl Requests {
    pub async fn read_log(
        &self,
        worker: &WorkerId,
        outgoing: Option<Outgoing>,
        question: ReadLog,
    ) -> Result<LogData, RequestError> {
        let ask = |request| Message::ReadLog(ReadLog { request, ..question });
        match self.request(worker, outgoing, READ_LOG_DEADLINE, ask).await? {
            Answered::Log(data) => Ok(data),
            Answered::Answer(_) => Err(RequestError::NotConnected(worker.clone())),
        }
    }

    pub async fn ask(
        &self,
        worker: &WorkerId,
        outgoing: Option<Outgoing>,
        question: Ask,
    ) -> Result<Answer, RequestError> {
        let ask = |request| Message::Ask(Ask { request, ..question });
        match self.request(worker, outgoing, ASK_DEADLINE, ask).await? {
            Answered::Answer(answer) => Ok(answer),
            Answered::Log(_) => Err(RequestError::NotConnected(worker.clone())),
        }
    }

    /// An answer arrived; late ones find nobody.
    pub fn answered(&self, number: u64, answer: Answered) {
        if let Some(waiter) = self.lock().waiters.remove(&number) {
            let _ = waiter.send(answer);
        }
    }

    async fn request(
        &self,
        worker: &WorkerId,
        outgoing: Option<Outgoing>,
        deadline: Duration,
        message: impl FnOnce(u64) -> Message,
    ) -> Result<Answered, RequestError> {
        let not_connected = || RequestError::NotConnected(worker.clone());
        let outgoing = outgoing.ok_or_else(not_connected)?;
        let (sender, waiter) = oneshot::channel();
        let number = {
            let mut pending = self.lock();
            pending.last += 1;
            let number = pending.last;
            pending.waiters.insert(number, sender);
            number
        };
        // Also when the caller goes away in the middle.
        let _forget = Forget { requests: self, number };
        let asked = async {
            let message = LeaderMessage { message: Some(message(number)) };
            tokio::select! {
                sent = outgoing.send(Ok(message)) => sent.map_err(|_| not_connected())?,
                () = outgoing.closed() => return Err(not_connected()),
            }
            tokio::select! {
                answer = waiter => answer.map_err(|_| not_connected()),
                () = outgoing.closed() => Err(not_connected()),
            }
        };
        let late = RequestError::Deadline { worker: worker.clone(), seconds: deadline.as_secs() };
        tokio::time::timeout(deadline, asked).await.unwrap_or(Err(late))
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Forget<'a> {
    requests: &'a Requests,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.requests.lock().waiters.remove(&self.number);
    }
}
