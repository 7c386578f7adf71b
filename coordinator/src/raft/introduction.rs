//! A node that starts shows its identity to every other member, and a new one waits for their word before it takes part.
//!
//! A new directory may belong to a node that never ran, or to one whose disk was lost with its votes. Only the others
//! can tell. So it takes part when **all** of them have answered that they know no other directory of this number; or,
//! when a cluster begins, when a **majority** of its members have never voted, this one included. A directory that
//! replaces a lost one needs the answers of all: the highest of their terms bounds what the lost one can have voted in.

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
pub fn admission(voters: usize, rejoin: bool, answers: &[IntroduceResponse]) -> Admission {
    if answers.len() + 1 == voters {
        let term = answers.iter().map(|answer| answer.term).max().unwrap_or_default();
        let replaced = answers.iter().any(|answer| answer.rejoined);
        return if replaced { Admission::CatchUp { term } } else { Admission::Member };
    }
    let without_votes = 1 + answers.iter().filter(|answer| answer.term == 0).count();
    let begins = without_votes > voters / 2 && !rejoin && !answers.iter().any(|answer| answer.rejoined);
    if begins { Admission::Member } else { Admission::Wait }
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
    let (answers, arriving) = mpsc::channel(members.voters().len());
    for (to, address) in members.peers() {
        let request = IntroduceRequest { from: members.node, to, identity: identity.own().to_owned(), rejoin };
        runtime.spawn(introduce(address.to_owned(), request, answers.clone(), events.clone()));
    }
    runtime.spawn(gather(members, identity, rejoin, arriving, events));
}

async fn gather(
    members: Arc<Members>,
    identity: Arc<Identity>,
    rejoin: bool,
    mut arriving: mpsc::Receiver<(u64, IntroduceResponse)>,
    events: mpsc::Sender<Event>,
) {
    let mut answered = Vec::new();
    let mut answers = Vec::new();
    while identity.stage() == Stage::New {
        match admission(members.voters().len(), rejoin, &answers) {
            Admission::Wait => {}
            Admission::Member => return drop(events.send(Event::TakePart(Stage::Admitted)).await),
            Admission::CatchUp { term } => {
                return drop(events.send(Event::TakePart(Stage::CatchingUp { term })).await);
            }
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

/// Asks one member until it has answered.
async fn introduce(
    address: String,
    request: IntroduceRequest,
    answers: mpsc::Sender<(u64, IntroduceResponse)>,
    events: mpsc::Sender<Event>,
) {
    // The transport, which uses the same address, says what is wrong with it.
    let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}")) else { return };
    let endpoint = endpoint.connect_timeout(CONNECT_LIMIT).timeout(CALL_LIMIT);
    let mut pause = PAUSE_FIRST;
    while !events.is_closed() {
        let answer = async {
            let channel = endpoint.connect().await.ok()?;
            Some(RaftServiceClient::new(channel).introduce(request.clone()).await)
        };
        match answer.await {
            Some(Ok(answer)) => {
                // Nobody listens any more once the node takes part.
                let _ = answers.send((request.to, answer.into_inner())).await;
                return;
            }
            Some(Err(status)) if is_other_identity(&status) => {
                let _ = events.send(Event::KnownByAnother { member: request.to }).await;
                return;
            }
            Some(Err(status)) => tracing::debug!(peer = request.to, reason = %status.message(), "not introduced yet"),
            None => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_LAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(term: u64, rejoined: bool) -> IntroduceResponse {
        IntroduceResponse { term, rejoined }
    }

    #[test]
    fn a_new_node_takes_part_when_all_others_know_nothing_of_it() {
        assert_eq!(admission(3, false, &[answer(4, false)]), Admission::Wait);
        assert_eq!(admission(3, false, &[answer(4, false), answer(4, false)]), Admission::Member);
    }

    #[test]
    fn a_cluster_begins_with_a_majority_that_has_never_voted() {
        assert_eq!(admission(3, false, &[]), Admission::Wait);
        assert_eq!(admission(3, false, &[answer(0, false)]), Admission::Member);
        assert_eq!(admission(5, false, &[answer(0, false)]), Admission::Wait);
        assert_eq!(admission(5, false, &[answer(0, false), answer(0, false)]), Admission::Member);
    }

    #[test]
    fn who_replaces_a_lost_directory_needs_all_answers_and_takes_the_highest_term() {
        assert_eq!(admission(3, true, &[answer(0, true)]), Admission::Wait);
        // It ended after the first answer and was started again without the flag.
        assert_eq!(admission(3, false, &[answer(0, true)]), Admission::Wait);
        assert_eq!(admission(3, true, &[answer(3, true), answer(5, false)]), Admission::CatchUp { term: 5 });
        assert_eq!(admission(3, true, &[answer(3, false), answer(5, false)]), Admission::Member);
    }
}
