//! Raft's messages from the other members, put back together and handed to the driver.

use coord_proto::peer::v1::raft_service_server::RaftService;
use coord_proto::peer::v1::{
    InstallSnapshotRequest, InstallSnapshotResponse, IntroduceRequest, IntroduceResponse, StepRequest, StepResponse,
};
use protobuf::Message as _;
use raft::eraftpb::Message;
use sha2::{Digest, Sha256};
use tonic::{Code, Request, Response, Status, Streaming};

use super::status::plain;
use crate::handle::{CoordinatorHandle, HandleError};
use crate::raft::driver::Event;
use crate::raft::identity::MeetError;
use crate::raft::transport::{OTHER_IDENTITY, hex};

/// Far above any state we hold; checked before memory is taken.
const SNAPSHOT_BYTES_MAX: usize = 1 << 30;

pub struct Peers {
    pub handle: CoordinatorHandle,
}

impl Peers {
    fn addressed_here(&self, to: u64) -> Result<(), Status> {
        let node = self.handle.members().node;
        if to == node {
            return Ok(());
        }
        let text = format!("this is node {node}, got a message for node {to}");
        Err(plain(Code::InvalidArgument, "wrong_node", text, "check the addresses in `--peers`"))
    }

    /// Only members that are who they were, and that mean this node, may speak to Raft.
    fn identified(&self, from: u64, from_identity: &str, to_identity: &str) -> Result<(), Status> {
        let identity = self.handle.identity();
        if !to_identity.is_empty() && to_identity != identity.own() {
            // The sender knows another directory of our number. Which of the two is right, our own introduction tells.
            let node = self.handle.members().node;
            let text = format!("node {node} has another data directory than node {from} remembers");
            return Err(plain(Code::FailedPrecondition, "stale_identity", text, ""));
        }
        self.meet(from, from_identity, false)?;
        Ok(())
    }

    fn meet(&self, from: u64, identity: &str, replace: bool) -> Result<bool, Status> {
        if self.handle.members().address(from).is_none() || identity.is_empty() {
            let text = format!("node {from} is no member here, or does not say its identity");
            return Err(plain(Code::InvalidArgument, "wrong_node", text, "check the addresses in `--peers`"));
        }
        // Writes a file, but once in the life of a member.
        self.handle.identity().meet(from, identity, replace).map_err(|error| match error {
            MeetError::Other { .. } => plain(Code::FailedPrecondition, OTHER_IDENTITY, error.to_string(), ""),
            MeetError::File(_) => plain(Code::Unavailable, "log_io", error.to_string(), ""),
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Message, Status> {
    Message::parse_from_bytes(bytes)
        .map_err(|error| plain(Code::InvalidArgument, "invalid_message", format!("decode raft message: {error}"), ""))
}

#[tonic::async_trait]
impl RaftService for Peers {
    async fn step(&self, request: Request<Streaming<StepRequest>>) -> Result<Response<StepResponse>, Status> {
        let mut groups = request.into_inner();
        loop {
            let group = tokio::select! {
                group = groups.message() => group?,
                // A peer never ends its stream: a node that stops does.
                () = self.handle.stopped() => return Err(HandleError::Stopping.into()),
            };
            let Some(group) = group else { break };
            self.addressed_here(group.to)?;
            self.handle.contacts().heard(group.from);
            for message in group.messages {
                // Before each: the queue may have been full while the sender's directory was replaced.
                self.identified(group.from, &group.from_identity, &group.to_identity)?;
                self.handle.step(Event::Receive(parse(&message)?)).await?;
            }
        }
        Ok(Response::new(StepResponse {}))
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<InstallSnapshotRequest>>,
    ) -> Result<Response<InstallSnapshotResponse>, Status> {
        let mut pieces = request.into_inner();
        let mut message = None;
        let mut data = Vec::new();
        let mut digest = String::new();
        while let Some(piece) = pieces.message().await? {
            self.addressed_here(piece.to)?;
            self.identified(piece.from, &piece.from_identity, &piece.to_identity)?;
            if message.is_none() {
                message = Some(parse(&piece.message)?);
            }
            if data.len() + piece.data.len() > SNAPSHOT_BYTES_MAX {
                return Err(plain(Code::ResourceExhausted, "too_large", "snapshot above 1 GiB", ""));
            }
            data.extend_from_slice(&piece.data);
            digest = piece.digest;
        }
        let got = hex(&Sha256::digest(&data));
        let Some(mut message) = message.filter(|_| got == digest) else {
            let text = format!("snapshot digest expected {digest:?}, got {got}");
            return Err(plain(Code::DataLoss, "invalid_message", text, ""));
        };
        message.mut_snapshot().set_data(data.into());
        self.handle.step(Event::Receive(message)).await?;
        Ok(Response::new(InstallSnapshotResponse {}))
    }

    async fn introduce(&self, request: Request<IntroduceRequest>) -> Result<Response<IntroduceResponse>, Status> {
        let request = request.into_inner();
        self.addressed_here(request.to)?;
        if self.meet(request.from, &request.identity, request.rejoin)? {
            tracing::warn!(node = request.from, "a member has lost its data directory and begins with a new one");
        }
        let rejoined = self.handle.identity().known(request.from).is_some_and(|known| known.rejoined);
        if rejoined && request.rejoin {
            // Each time, because the answer to an earlier call may never have been made; a second time changes nothing.
            self.handle.step(Event::Replaced(request.from)).await?;
        }
        // Read after the identity is remembered: a later message of the lost directory is refused.
        let identity = self.handle.identity().own().to_owned();
        Ok(Response::new(IntroduceResponse { term: self.handle.view().raft.term, rejoined, identity }))
    }
}
