//! Raft's messages from the other members, put back together and handed to the driver.

use coord_proto::peer::v1::raft_service_server::RaftService;
use coord_proto::peer::v1::{InstallSnapshotRequest, InstallSnapshotResponse, StepRequest, StepResponse};
use protobuf::Message as _;
use raft::eraftpb::Message;
use sha2::{Digest, Sha256};
use tonic::{Code, Request, Response, Status, Streaming};

use super::status::plain;
use crate::handle::{CoordinatorHandle, HandleError};
use crate::raft::driver::Event;
use crate::raft::transport::hex;

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
            for message in group.messages {
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
}
