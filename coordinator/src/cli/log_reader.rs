//! Reads a job's log from a vector of positions, so that a broken stream costs no line and repeats none.

use std::collections::BTreeMap;
use std::time::Duration;

use coord_proto::v1;
use tokio::time::Instant;
use tonic::Streaming;

use super::call_error::{CallError, judge};
use super::client::Client;
use super::exit::{Exit, Problem};

/// A stream that is silent for longer is opened anew: a proxy may have dropped it without a word.
const SILENCE_MAX: Duration = Duration::from_secs(50);
/// How long a follower looks for a coordinator that answers before it gives up.
const FRUITLESS_FOLLOW_MAX: Duration = Duration::from_secs(120);
/// The same for a reader that wants only what is there.
const FRUITLESS_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

/// How the job ended, or how it was when a log that is not followed was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub phase: v1::Phase,
    pub ended_by: String,
}

/// How one stream came to its end.
enum Drained {
    End(End),
    /// Nothing was said for so long that another stream should be tried.
    Silent,
    Broken {
        /// Something arrived before it broke.
        fruitful: bool,
        error: CallError,
    },
}

fn broken(said: &str) -> CallError {
    CallError::Broken { said: said.to_owned() }
}

/// Where a reader stands in each log of a job.
#[derive(Debug)]
pub struct LogReader {
    job: String,
    task: String,
    follow: bool,
    /// (task, attempt) to position: a line is noted here as soon as it has been handed on.
    positions: BTreeMap<(String, u64), u64>,
    seen_anything: bool,
}

impl LogReader {
    /// `task` empty = all logs of the job.
    pub fn new(job: &str, task: String, follow: bool) -> Self {
        Self { job: job.to_owned(), task, follow, positions: BTreeMap::new(), seen_anything: false }
    }

    /// Hands on every line in order, once, until the end of the log or of the job.
    pub async fn read(
        &mut self,
        client: &mut Client,
        mut line: impl FnMut(&v1::LogLine) -> Result<(), Problem>,
        mut remark: impl FnMut(&str),
    ) -> Result<End, Problem> {
        let mut fruitless_since = None;
        loop {
            let broken = match client.read_logs(self.request()).await {
                Ok(stream) => match self.drain(stream, &mut line, &mut remark).await? {
                    Drained::End(end) => return Ok(end),
                    Drained::Silent | Drained::Broken { fruitful: true, .. } => {
                        fruitless_since = None;
                        continue;
                    }
                    Drained::Broken { fruitful: false, error } => error,
                },
                Err(error) => error,
            };
            let is_first = fruitless_since.is_none();
            let since = *fruitless_since.get_or_insert_with(Instant::now);
            let limit = if self.follow { FRUITLESS_FOLLOW_MAX } else { FRUITLESS_MAX };
            if !broken.retryable() || since.elapsed() >= limit {
                return Err(self.problem(broken));
            }
            // Calls without an answer are said where they are made. A stream that opens and breaks is said once.
            if is_first && matches!(broken, CallError::Broken { .. }) {
                remark(&format!("{broken}; trying again"));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads one stream to its end, whatever kind of end that is.
    async fn drain(
        &mut self,
        mut stream: Streaming<v1::ReadLogsResponse>,
        line: &mut impl FnMut(&v1::LogLine) -> Result<(), Problem>,
        remark: &mut impl FnMut(&str),
    ) -> Result<Drained, Problem> {
        let mut phase = v1::Phase::Unspecified;
        let mut fruitful = false;
        loop {
            let Ok(next) = tokio::time::timeout(SILENCE_MAX, stream.message()).await else {
                return Ok(Drained::Silent);
            };
            let message = match next {
                Ok(Some(message)) => message,
                // A log that is not followed ends with its stream.
                Ok(None) if !self.follow => return Ok(Drained::End(End { phase, ended_by: String::new() })),
                Ok(None) => return Ok(Drained::Broken { fruitful, error: broken("the stream ended early") }),
                Err(status) => match judge(&status) {
                    Ok(setback) => return Ok(Drained::Broken { fruitful, error: broken(&setback.said) }),
                    Err(refusal) => return Err(self.problem(refusal)),
                },
            };
            fruitful = true;
            self.seen_anything = true;
            for note in &message.notes {
                remark(note);
            }
            for entry in &message.lines {
                line(entry)?;
                if let Some(next) = &entry.next {
                    self.positions.insert((next.task.clone(), next.attempt), next.position);
                }
            }
            phase = message.phase();
            if message.ended {
                return Ok(Drained::End(End { phase, ended_by: message.ended_by }));
            }
        }
    }

    fn request(&self) -> v1::ReadLogsRequest {
        let from = self.positions.iter().map(|((task, attempt), &position)| v1::LogPosition {
            task: task.clone(),
            attempt: *attempt,
            position,
        });
        v1::ReadLogsRequest {
            job: self.job.clone(),
            from: from.collect(),
            follow: self.follow,
            task: self.task.clone(),
        }
    }

    fn problem(&self, error: CallError) -> Problem {
        if error.is_not_found() && self.seen_anything {
            return Problem::new(Exit::NotFound, format!("job {} was removed", self.job));
        }
        let lost = error.retryable();
        let problem = Problem::from(error).context("cannot read logs");
        if lost && self.follow {
            problem.hint(format!("the job goes on without its follower; come back with `coord logs {} -f`", self.job))
        } else {
            problem
        }
    }
}
