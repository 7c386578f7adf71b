//! A node that starts shows its identity to every other member, and a new one waits for their word before it takes part.
//!
//! A new directory may belong to a node that never ran, or to one whose disk was lost with its votes. Only the others
//! can tell, and of those only all together: two that were emptied at the same time would believe each other. So it takes
//! part when **all** others have answered that they know no other directory of this number. For one that replaces a lost
//! one the highest of their terms bounds what the lost one can have voted in.

use std::sync::Arc;
use std::time::Duration;

use coord_proto::peer::v1::raft_service_client::RaftServiceClient;
use coord_proto::peer::v1::{IntroduceRequest, IntroduceResponse};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tonic::transport::Endpoint;

use super::driver::Event;
use super::identity::{Identity, Stage};
use super::membership::Members;
use super::transport::is_other_identity;

const CONNECT_LIMIT: Duration = Duration::from_secs(1);
const CALL_LIMIT: Duration = Duration::from_secs(3);
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_LAST: Duration = Duration::from_secs(1);
/// A new node that still waits says so this often.
const REMIND: Duration = Duration::from_secs(10);

/// What a new node may do after what it has heard so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Wait,
    Member,
    /// In the place of a lost directory that may have voted in terms up to this one.
    CatchUp {
        term: u64,
    },
}

/// `answers` of the other members of a cluster with this many `voters`.
pub fn admission(voters: usize, answers: &[IntroduceResponse]) -> Admission {
    if answers.len() + 1 < voters {
        return Admission::Wait;
    }
    let term = answers.iter().map(|answer| answer.term).max().unwrap_or_default();
    let replaced = answers.iter().any(|answer| answer.rejoined);
    if replaced { Admission::CatchUp { term } } else { Admission::Member }
}

/// Starts a task on `runtime` that ends when every member has answered. It reports through `events`: once what a new
/// node may do, and whenever a member knows another directory of this number.
pub fn start(
    members: Arc<Members>,
    identity: Arc<Identity>,
    rejoin: bool,
    runtime: &Handle,
    events: mpsc::Sender<Event>,
) {
    if rejoin && identity.stage() == Stage::New {
        tracing::info!(
            "rejoins: waits until every other node has answered, then fills the data directory from the leader"
        );
    }
    let (answers, arriving) = mpsc::channel(members.voters().len());
    for (to, address) in members.peers() {
        let request = IntroduceRequest { from: members.node, to, identity: identity.own().to_owned(), rejoin };
        let caller = Caller { identity: identity.clone(), answers: answers.clone(), events: events.clone() };
        runtime.spawn(caller.introduce(address.to_owned(), request));
    }
    runtime.spawn(gather(members, identity, arriving, events));
}

async fn gather(
    members: Arc<Members>,
    identity: Arc<Identity>,
    mut arriving: mpsc::Receiver<(u64, IntroduceResponse)>,
    events: mpsc::Sender<Event>,
) {
    let mut answered = Vec::new();
    let mut answers = Vec::new();
    while identity.stage() == Stage::New {
        let stage = match admission(members.voters().len(), &answers) {
            Admission::Wait => None,
            Admission::Member => Some(Stage::Admitted),
            Admission::CatchUp { term } => Some(Stage::CatchingUp { term }),
        };
        if let Some(stage) = stage {
            // Nobody listens any more when the node is about to end.
            let _ = events.send(Event::TakePart(stage)).await;
            return;
        }
        match tokio::time::timeout(REMIND, arriving.recv()).await {
            Ok(Some((member, answer))) => {
                answered.push(member);
                answers.push(answer);
            }
            Ok(None) => return,
            Err(_) => {
                let silent: Vec<u64> =
                    members.peers().map(|(member, _)| member).filter(|member| !answered.contains(member)).collect();
                tracing::warn!(
                    ?silent,
                    "a new data directory waits for these nodes to say whether this node had another one before"
                );
            }
        }
    }
}

struct Caller {
    identity: Arc<Identity>,
    answers: mpsc::Sender<(u64, IntroduceResponse)>,
    events: mpsc::Sender<Event>,
}

impl Caller {
    /// Asks one member until it has answered.
    async fn introduce(self, address: String, request: IntroduceRequest) {
        // The transport, which uses the same address, says what is wrong with it.
        let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}")) else { return };
        let endpoint = endpoint.connect_timeout(CONNECT_LIMIT).timeout(CALL_LIMIT);
        let mut pause = PAUSE_FIRST;
        while !self.events.is_closed() {
            let answer = async {
                let channel = endpoint.connect().await.ok()?;
                Some(RaftServiceClient::new(channel).introduce(request.clone()).await)
            };
            match answer.await {
                Some(Ok(answer)) => return self.answered(request.to, answer.into_inner()).await,
                Some(Err(status)) if is_other_identity(&status) => {
                    let _ = self.events.send(Event::KnownByAnother { member: request.to }).await;
                    return;
                }
                Some(Err(status)) => {
                    tracing::debug!(peer = request.to, reason = %status.message(), "not introduced yet");
                }
                None => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LAST);
        }
    }

    async fn answered(&self, member: u64, answer: IntroduceResponse) {
        if let Err(error) = self.identity.meet(member, &answer.identity, false) {
            // Messages between the two are refused until it is started with `--rejoin`.
            tracing::error!(peer = member, %error, "a member has another data directory than before");
        }
        // Nobody listens any more once the node takes part.
        let _ = self.answers.send((member, answer)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(term: u64, rejoined: bool) -> IntroduceResponse {
        IntroduceResponse { term, rejoined, identity: String::new() }
    }

    /// Two that were emptied would believe each other: nothing less than all answers counts, whatever they say.
    #[test]
    fn a_new_node_takes_part_when_all_others_know_nothing_of_it() {
        assert_eq!(admission(1, &[]), Admission::Member);
        assert_eq!(admission(3, &[]), Admission::Wait);
        assert_eq!(admission(3, &[answer(0, false)]), Admission::Wait);
        assert_eq!(admission(3, &[answer(4, false)]), Admission::Wait);
        assert_eq!(admission(3, &[answer(0, false), answer(4, false)]), Admission::Member);
    }

    #[test]
    fn who_replaces_a_lost_directory_needs_all_answers_and_takes_the_highest_term() {
        assert_eq!(admission(3, &[answer(0, true)]), Admission::Wait);
        // It ended after the first answer and was started again without the flag.
        assert_eq!(admission(3, &[answer(3, true), answer(5, false)]), Admission::CatchUp { term: 5 });
        assert_eq!(admission(3, &[answer(3, false), answer(5, false)]), Admission::Member);
    }
}
