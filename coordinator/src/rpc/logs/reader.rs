//! Walks through the logs of a job: the platform's own, and each replica's through all generations.

use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Generation, JobId, Phase, Rank, WorkerId, convert, replica_name};
use coord_proto::v1::{LogLine, ReadLogsRequest, ReadLogsResponse};
use coordinator_core::ClusterState;
use coordinator_core::job::{End, Job, Stage};
use coordinator_core::view::{SERVICE, service_lines};
use tonic::Status;

use super::lines;
use super::source::{By, Log, Source};
use crate::leader::Leader;
use crate::rpc::status::no_such_job;

/// Lines of one message: some 100 KiB at most lines' length.
const LINES_PER_MESSAGE: usize = 500;
/// Agents push within seconds: logs of generations before these are looked for in storage only.
const GENERATIONS_ASKED: u64 = 20;

/// What one look at everything gave.
pub struct Progress {
    pub messages: Vec<ReadLogsResponse>,
    pub done: bool,
}

pub struct Reader {
    leader: Leader,
    job: JobId,
    follow: bool,
    task: String,
    service_position: u64,
    cursors: BTreeMap<Rank, Cursor>,
    /// From the request, until the cursor of the rank is made.
    begin: BTreeMap<String, (u64, u64)>,
    source: Option<Source>,
    noted: BTreeSet<String>,
    phase: Phase,
}

/// Everything before is handed on.
struct Cursor {
    generation: Generation,
    position: u64,
    /// The log of the newest generation has been read to its end.
    at_end: bool,
}

/// What the state says of the job, taken at once.
struct Look {
    phase: Phase,
    ended_by: String,
    generation: Generation,
    job_dir: String,
    ranks: u32,
    replicas: Vec<ReplicaLook>,
    service: Vec<LogLine>,
}

struct ReplicaLook {
    worker: WorkerId,
    worker_lost: bool,
    ended: bool,
    /// It never ran: there is no log to wait for.
    refused: bool,
}

impl Reader {
    pub fn new(leader: Leader, job: JobId, request: &ReadLogsRequest) -> Self {
        let mut begin: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for from in &request.from {
            // Order within a replica is exact, so of several attempts only the newest can be unfinished.
            let known = begin.entry(from.task.clone()).or_default();
            *known = (*known).max((from.attempt, from.position));
        }
        Self {
            leader,
            job,
            follow: request.follow,
            task: request.task.clone(),
            service_position: begin.get(SERVICE).map_or(0, |(_, position)| *position),
            cursors: BTreeMap::new(),
            begin,
            source: None,
            noted: BTreeSet::new(),
            phase: Phase::Queued,
        }
    }

    /// A message without lines.
    pub fn phase_only(&self) -> ReadLogsResponse {
        ReadLogsResponse { phase: convert::phase_to_wire(self.phase).into(), ..Default::default() }
    }

    pub async fn advance(&mut self) -> Result<Progress, Status> {
        let look = self.look()?;
        self.phase = look.phase;
        let mut logs = Vec::new();
        let mut notes = Vec::new();
        if self.wants(SERVICE) {
            self.service_position += look.service.len() as u64;
            logs.push(look.service.clone());
        }
        let mut all_at_end = true;
        for rank in (0..look.ranks).map(Rank) {
            if self.wants(&replica_name(rank)) {
                let mut log = Vec::new();
                all_at_end &= self.advance_rank(rank, &look, &mut log, &mut notes).await;
                logs.push(log);
            }
        }
        let found = lines::merge(logs);
        let drained = found.is_empty() && all_at_end;
        let ended = look.phase.is_final() && drained && self.follow;
        let done = ended || (!self.follow && drained);
        let phase = convert::phase_to_wire(look.phase).into();
        let mut messages: Vec<ReadLogsResponse> = found
            .chunks(LINES_PER_MESSAGE)
            .map(|lines| ReadLogsResponse { lines: lines.to_vec(), phase, ..Default::default() })
            .collect();
        if done || !notes.is_empty() {
            let ended_by = if ended { look.ended_by } else { String::new() };
            messages.push(ReadLogsResponse { lines: Vec::new(), ended, phase, ended_by, notes });
        }
        Ok(Progress { messages, done })
    }

    fn wants(&self, task: &str) -> bool {
        self.task.is_empty() || self.task == task
    }

    fn look(&self) -> Result<Look, Status> {
        let from = self.service_position as usize;
        let look = self.leader.handle().peek(|state| state.job(&self.job).map(|job| look(state, job, from)));
        look.ok_or_else(|| no_such_job(self.job.as_str()))
    }

    /// Reads what is new of a rank, at most one piece per call and generation. True if nothing more is to be had: at
    /// all if the job is over, now otherwise.
    async fn advance_rank(
        &mut self,
        rank: Rank,
        look: &Look,
        found: &mut Vec<LogLine>,
        notes: &mut Vec<String>,
    ) -> bool {
        let task = replica_name(rank);
        let begin = self.begin.get(&task).copied().unwrap_or((1, 0));
        let mut cursor = self.cursors.remove(&rank).unwrap_or(Cursor {
            generation: Generation(begin.0.max(1)),
            position: begin.1,
            at_end: false,
        });
        while cursor.generation <= look.generation && !cursor.at_end {
            let present = cursor.generation == look.generation;
            let before = found.len();
            let exhausted = self.read_piece(rank, &mut cursor, look, found, notes).await;
            if !exhausted {
                let got_lines = found.len() > before;
                self.cursors.insert(rank, cursor);
                // More may follow at once after lines; without any, this log waits for its replica.
                return !got_lines && !self.follow;
            }
            if present {
                cursor.at_end = true;
            } else {
                cursor = Cursor { generation: cursor.generation.next(), position: 0, at_end: false };
            }
        }
        if cursor.generation < look.generation {
            // A new generation began after the end of the one before had been reached.
            cursor = Cursor { generation: cursor.generation.next(), position: 0, at_end: false };
        }
        let at_end = cursor.at_end || cursor.generation > look.generation;
        self.cursors.insert(rank, cursor);
        at_end
    }

    /// One read at the cursor. True if this generation's log is over and has been read to its end.
    async fn read_piece(
        &mut self,
        rank: Rank,
        cursor: &mut Cursor,
        look: &Look,
        found: &mut Vec<LogLine>,
        notes: &mut Vec<String>,
    ) -> bool {
        let present = cursor.generation == look.generation;
        let replica = look.replicas.get(rank.index()).filter(|_| present);
        if present && replica.is_none_or(|replica| replica.refused) {
            return true;
        }
        let workers = match replica {
            Some(replica) => vec![replica.worker.clone()],
            None if cursor.generation.0 + GENERATIONS_ASKED > look.generation.0 => self.leader.agents().connected(),
            None => Vec::new(),
        };
        let log = Log { job: self.job.clone(), generation: cursor.generation, rank, workers };
        let source = self.source.get_or_insert_with(|| Source::new(self.leader.clone(), look.job_dir.clone()));
        let read = match source.read(&log, cursor.position).await {
            Ok(read) => read,
            Err(error) => {
                self.note(notes, format!("cannot read the log of {} from storage: {error}", log.task()));
                return !present || replica.is_some_and(|replica| replica.ended);
            }
        };
        let over = replica.is_none_or(|replica| replica.ended);
        let last = match read.by {
            By::Agent { ended } => ended,
            By::Storage { ended } => over && ended,
        };
        let (new, position) = lines::split(&log.task(), cursor.generation.0, cursor.position, &read.data, last && over);
        cursor.position = position;
        found.extend(new);
        if !last {
            return false;
        }
        let Some(replica) = replica.filter(|_| matches!(read.by, By::Storage { .. })) else { return true };
        let connected = self.leader.agents().connected().contains(&replica.worker);
        if replica.worker_lost {
            let text = format!("worker {} was lost: the last lines of {} may be missing", replica.worker, log.task());
            self.note(notes, text);
        } else if !connected && self.follow {
            // It may come back with lines that storage lacks; if not, it is lost soon.
            return false;
        } else if !connected {
            let text = format!("worker {} is not connected: newer lines of {} may exist", replica.worker, log.task());
            self.note(notes, text);
        }
        true
    }

    /// Each remark once.
    fn note(&mut self, notes: &mut Vec<String>, text: String) {
        if self.noted.insert(text.clone()) {
            notes.push(text);
        }
    }
}

fn look(state: &ClusterState, job: &Job, service_from: usize) -> Look {
    let mut service = service_lines(state, &job.spec.job);
    service.drain(..service_from.min(service.len()));
    let replicas = job.replicas.iter().map(|replica| ReplicaLook {
        worker: replica.worker.clone(),
        worker_lost: state.worker(&replica.worker).is_none_or(|worker| worker.lost),
        ended: !replica.is_live(),
        refused: matches!(replica.stage, Stage::Ended { end: End::Refused { .. }, .. }),
    });
    Look {
        phase: job.phase,
        ended_by: job.cancelled_by.map(|by| by.as_str().to_owned()).unwrap_or_default(),
        generation: job.generation,
        job_dir: job.job_dir.clone(),
        ranks: job.spec.workers_max().max(job.replicas.len() as u32),
        replicas: replicas.collect(),
        service,
    }
}
