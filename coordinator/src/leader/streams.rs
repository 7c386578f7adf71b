//! One agent's stream: registers, hears, acknowledges, tells.

use std::time::Duration;

use coord_common::{Coded, Fact, FactBody, Rank, Registration, convert};
use coord_proto::v1::agent_message::Message as Said;
use coord_proto::v1::leader_message::Message as Told;
use coord_proto::v1::{Acknowledge, AgentMessage, HeartbeatReply, LeaderMessage, Register, Registered, ReplicaKey};
use coordinator_core::{Command, Reply};
use futures::StreamExt;
use futures::stream::FuturesOrdered;
use tonic::{Code, Status, Streaming};

use super::Leader;
use super::agents::Outgoing;
use super::requests::Answered;
use crate::handle::HandleError;
use crate::rpc::status::{plain, refused};

const HEARTBEAT_MILLIS: u64 = 1_000;
/// A stream that says nothing for this long is taken for broken; the agent opens another.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// An agent that does not read for this long is let go.
const SEND_DEADLINE: Duration = Duration::from_secs(5);
/// Facts that may wait for their commit; more are read only when these are acknowledged.
const FACTS_IN_FLIGHT: usize = 64;

/// Serves the stream until it breaks, another replaces it, or this node no longer leads.
pub async fn serve(leader: Leader, mut said: Streaming<AgentMessage>, outgoing: Outgoing) {
    let registration = match registration(&mut said).await {
        Ok(registration) => registration,
        Err(status) => return end(&outgoing, status).await,
    };
    let worker = registration.worker.clone();
    match attend(&leader, &registration, &mut said, &outgoing).await {
        Ok(Ended::Left) => tracing::info!(%worker, "worker {} left", registration.name),
        Ok(Ended::Closed) => tracing::info!(%worker, "agent closed its stream"),
        Err(status) => {
            tracing::info!(%worker, reason = status.message(), "lost the stream of an agent");
            end(&outgoing, status).await;
        }
    }
}

enum Ended {
    Closed,
    /// After its goodbye it makes no difference whether the process closed its connection or just ended.
    Left,
}

async fn end(outgoing: &Outgoing, status: Status) {
    let _ = outgoing.send_timeout(Err(status), SEND_DEADLINE).await;
}

async fn registration(said: &mut Streaming<AgentMessage>) -> Result<Registration, Status> {
    let first = tokio::time::timeout(SILENCE_MAX, said.message()).await;
    let first = first.map_err(|_| plain(Code::DeadlineExceeded, "silent", "no registration within 10 s", ""))??;
    let Some(AgentMessage { message: Some(Said::Register(register)) }) = first else {
        return Err(invalid("the first message of a stream must be Register"));
    };
    convert::registration_from_wire(&register).map_err(|error| refused(Code::InvalidArgument, &error))
}

fn invalid(text: impl Into<String>) -> Status {
    plain(Code::InvalidArgument, "invalid_message", text, "agent and coordinator should have the same version")
}

async fn attend(
    leader: &Leader,
    registration: &Registration,
    said: &mut Streaming<AgentMessage>,
    outgoing: &Outgoing,
) -> Result<Ended, Status> {
    let handle = leader.handle();
    let (worker, incarnation) = (&registration.worker, &registration.incarnation);
    // Also refuses while this node does not lead.
    if let Reply::Rejected(rejection) = handle.propose(Command::RegisterWorker(registration.clone())).await? {
        return Err(refused(Code::FailedPrecondition, &rejection));
    }
    let term = handle.view().raft.term;
    handle.require_lead()?;
    let policy = leader.policy();
    let (stream, mut replaced) = {
        let mut agents = leader.agents();
        agents.begin(term, leader.now(), policy);
        agents.attach(worker, incarnation, outgoing.clone(), registration.alive.clone(), leader.now())
    };
    let lease_millis = policy.lease.0;
    let _detach = Detach { leader, registration, stream };
    tracing::info!(%worker, name = registration.name, slots = registration.slots, "agent attached");
    let begun_millis = handle.peek(|state| state.begun().0);
    send(outgoing, Told::Registered(Registered { heartbeat_millis: HEARTBEAT_MILLIS, lease_millis, begun_millis }))
        .await?;
    tell(leader, registration, outgoing).await?;

    let mut views = handle.views();
    let mut facts = FuturesOrdered::new();
    let mut leaving = false;
    let silence = tokio::time::sleep(SILENCE_MAX);
    tokio::pin!(silence);
    loop {
        tokio::select! {
            message = said.message(), if facts.len() < FACTS_IN_FLIGHT => {
                silence.as_mut().reset(tokio::time::Instant::now() + SILENCE_MAX);
                let message = match message {
                    Ok(Some(message)) => message,
                    Ok(None) if !leaving => return Ok(Ended::Closed),
                    Err(status) if !leaving => return Err(status),
                    Ok(None) | Err(_) => return Ok(Ended::Left),
                };
                match message.message.ok_or_else(|| invalid("a message without content"))? {
                    Said::Heartbeat(heartbeat) => {
                        if handle.peek(|state| state.worker(worker).is_none_or(|known| known.lost)) {
                            // It was frozen for longer than the lease, and its stream outlived it.
                            let text = "this worker was called lost while it was silent";
                            return Err(plain(Code::Aborted, "lost", text, "attach again"));
                        }
                        let heartbeat =
                            convert::heartbeat_from_wire(&heartbeat).map_err(|error| invalid(error.to_string()))?;
                        leader.agents().heard(worker, incarnation, stream, heartbeat, leader.now());
                        send(outgoing, Told::Heartbeat(HeartbeatReply {})).await?;
                        tell(leader, registration, outgoing).await?;
                    }
                    Said::Fact(fact) => {
                        let fact = convert::fact_from_wire(&fact).map_err(|error| invalid(error.to_string()))?;
                        facts.push_back(commit(leader, registration, fact).await?);
                    }
                    Said::Progress(progress) => progressed(leader, progress.key, progress.progress),
                    Said::Log(data) => leader.requests().answered(data.request, Answered::Log(data)),
                    Said::Answer(answer) => leader.requests().answered(answer.request, Answered::Answer(answer)),
                    Said::Leaving(_) => {
                        leaving = true;
                        let (worker, incarnation) = (worker.clone(), incarnation.clone());
                        handle.propose(Command::DrainWorker { worker, incarnation }).await?;
                    }
                    Said::Register(Register { .. }) => return Err(invalid("a second Register on one stream")),
                }
            }
            Some(committed) = facts.next() => {
                let sequence: u64 = committed?;
                send(outgoing, Told::Acknowledge(Acknowledge { sequence })).await?;
            }
            changed = views.changed() => {
                let raft = views.borrow_and_update().raft;
                if changed.is_err() {
                    return Err(HandleError::Stopping.into());
                }
                handle.require_lead()?;
                if raft.term != term {
                    return Err(plain(Code::Unavailable, "not_leader", "the lead changed", "attach again"));
                }
            }
            _ = &mut replaced => {
                let text = "another stream of this worker took over";
                return Err(plain(Code::Aborted, "superseded", text, "two agents must not share a work directory"));
            }
            () = &mut silence => {
                return Err(plain(Code::DeadlineExceeded, "silent", "no heartbeat within 10 s", "attach again"));
            }
        }
    }
}

struct Detach<'a> {
    leader: &'a Leader,
    registration: &'a Registration,
    stream: u64,
}

impl Drop for Detach<'_> {
    fn drop(&mut self) {
        let Registration { worker, incarnation, .. } = self.registration;
        self.leader.agents().detach(worker, incarnation, self.stream);
    }
}

async fn send(outgoing: &Outgoing, message: Told) -> Result<(), Status> {
    send_message(outgoing, LeaderMessage { message: Some(message) }).await
}

async fn send_message(outgoing: &Outgoing, message: LeaderMessage) -> Result<(), Status> {
    let sent = outgoing.send_timeout(Ok(message), SEND_DEADLINE).await;
    sent.map_err(|_| plain(Code::DeadlineExceeded, "silent", "the agent does not read its stream", ""))
}

/// All orders that are due for this agent.
async fn tell(leader: &Leader, registration: &Registration, outgoing: &Outgoing) -> Result<(), Status> {
    for order in leader.due_orders(&registration.worker) {
        tracing::debug!(worker = %registration.worker, %order, "order");
        send_message(outgoing, convert::order_to_wire(&order)).await?;
    }
    Ok(())
}

/// Puts a fact into the log, in the agent's order; the future gives its sequence once it is committed.
async fn commit(
    leader: &Leader,
    registration: &Registration,
    fact: Fact,
) -> Result<impl Future<Output = Result<u64, Status>> + use<>, Status> {
    let sequence = fact.sequence;
    let (worker, incarnation) = (registration.worker.clone(), registration.incarnation.clone());
    log_fact(&registration.worker, &fact);
    let ended = matches!(fact.body, FactBody::Exited(_)).then(|| fact.key.clone());
    let answer = leader.handle().enqueue(Command::ReplicaFact { worker: worker.clone(), incarnation, fact }).await?;
    let leader = leader.clone();
    Ok(async move {
        let reply = answer.await?;
        if let Some(key) = ended {
            leader.agents().liveness.replica_ended(&worker, &key);
        }
        match reply {
            // Sent again, in order, over the next stream.
            Reply::Rejected(rejection) if rejection.retryable() => Err(refused(Code::Aborted, &rejection)),
            Reply::Rejected(rejection) => {
                tracing::warn!(%worker, sequence, code = rejection.code, reason = %rejection, "fact refused");
                Ok(sequence)
            }
            Reply::Done | Reply::Ignored { .. } | Reply::Submitted { .. } | Reply::Cancelled { .. } => Ok(sequence),
        }
    })
}

fn log_fact(worker: &coord_common::WorkerId, fact: &Fact) {
    let (job, generation, rank) = (&fact.key.job, fact.key.generation, fact.key.rank);
    match &fact.body {
        FactBody::Ready { .. } => tracing::debug!(%job, %generation, %rank, %worker, "replica is ready"),
        FactBody::Running { step } => tracing::info!(%job, %generation, %rank, %worker, %step, "replica runs"),
        FactBody::Exited(report) => {
            tracing::info!(%job, %generation, %rank, %worker, exit = ?report.exit, "replica ended");
        }
        FactBody::Checkpoint(record) => {
            tracing::info!(%job, %generation, %rank, %worker, step = %record.step, "checkpoint recorded");
        }
        FactBody::Refused { reason } => {
            tracing::warn!(%job, %generation, %rank, %worker, reason, "agent refused a launch");
        }
    }
}

/// A gauge counts if it comes from the master replica of the job's present generation.
fn progressed(leader: &Leader, key: Option<ReplicaKey>, progress: Option<coord_proto::v1::Progress>) {
    let (Some(Ok(key)), Some(progress)) = (key.as_ref().map(convert::key_from_wire), progress) else { return };
    let present = leader
        .handle()
        .peek(|state| state.job(&key.job).is_some_and(|job| !job.phase.is_final() && job.generation == key.generation));
    if present && key.rank == Rank::MASTER {
        leader.agents().progressed(&key, convert::progress_from_wire(&progress), leader.now());
    }
}
