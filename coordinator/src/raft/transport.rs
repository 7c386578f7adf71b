//! Carries Raft's messages to the other members: one task and one bounded queue each, losing what does not fit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coord_proto::detail::detail_of;
use coord_proto::peer::v1::raft_service_client::RaftServiceClient;
use coord_proto::peer::v1::{InstallSnapshotRequest, StepRequest};
use protobuf::Message as _;
use raft::eraftpb::{Message, MessageType};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use super::driver::Event;
use super::identity::Identity;
use super::membership::Members;

/// Raft sends again what is lost, so a full queue costs time, never data.
const QUEUE_MESSAGES: usize = 1_024;
const GROUP_MESSAGES: usize = 64;
const GROUP_BYTES: usize = 1 << 20;
pub const MESSAGE_LIMIT: usize = 8 << 20;
const SNAPSHOT_PIECE: usize = 1 << 20;
const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_LAST: Duration = Duration::from_secs(1);

/// Sends without waiting; the tasks behind it end when it is dropped.
pub struct Transport {
    queues: BTreeMap<u64, mpsc::Sender<Message>>,
}

impl Transport {
    /// Starts a task per peer on `runtime`; losses are reported to the driver through `events`.
    pub fn start(members: &Members, identity: &Arc<Identity>, runtime: &Handle, events: &mpsc::Sender<Event>) -> Self {
        let mut queues = BTreeMap::new();
        for (to, address) in members.peers() {
            let (queue, messages) = mpsc::channel(QUEUE_MESSAGES);
            let (identity, address, events) = (identity.clone(), address.to_owned(), events.clone());
            let peer = Peer { from: members.node, to, address, identity, events };
            runtime.spawn(peer.run(messages));
            queues.insert(to, queue);
        }
        Self { queues }
    }

    pub fn send(&self, message: Message) {
        let Some(queue) = self.queues.get(&message.to) else { return };
        if let Err(mpsc::error::TrySendError::Full(lost)) = queue.try_send(message) {
            tracing::debug!(to = lost.to, "raft queue is full, a message is lost");
        }
    }
}

struct Peer {
    from: u64,
    to: u64,
    address: String,
    identity: Arc<Identity>,
    events: mpsc::Sender<Event>,
}

impl Peer {
    async fn run(self, mut messages: mpsc::Receiver<Message>) {
        let endpoint = match Endpoint::from_shared(format!("http://{}", self.address)) {
            Ok(endpoint) => endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(10))
                .keep_alive_timeout(Duration::from_secs(20))
                .keep_alive_while_idle(true),
            Err(error) => {
                tracing::error!(peer = self.to, address = %self.address, %error, "cannot use the address of a peer");
                return;
            }
        };
        let channel = endpoint.connect_lazy();
        let mut backoff = BACKOFF_FIRST;
        let mut reachable = true;
        loop {
            let began = tokio::time::Instant::now();
            match self.stream(channel.clone(), &mut messages).await {
                Ended::Closed => return,
                Ended::Broken(status) => {
                    if reachable {
                        tracing::info!(peer = self.to, address = %self.address, reason = %status.message(), "lost a peer");
                        reachable = false;
                    }
                    if is_other_identity(&status) {
                        // It may be set right by a start with `--rejoin`, so this goes on trying.
                        let _ = self.events.send(Event::KnownByAnother { member: self.to }).await;
                    }
                }
            }
            let _ = self.events.send(Event::Unreachable(self.to)).await;
            if began.elapsed() > BACKOFF_LAST {
                backoff = BACKOFF_FIRST;
                reachable = true;
            }
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_LAST);
            // What waited meanwhile is stale.
            while messages.try_recv().is_ok() {}
        }
    }

    /// One `Step` call, for as long as it holds.
    async fn stream(&self, channel: Channel, messages: &mut mpsc::Receiver<Message>) -> Ended {
        let Some(mut next) = messages.recv().await else { return Ended::Closed };
        let (requests, stream) = mpsc::channel(4);
        let mut client = RaftServiceClient::new(channel.clone()).max_encoding_message_size(MESSAGE_LIMIT);
        let call = client.step(ReceiverStream::new(stream));
        tokio::pin!(call);
        loop {
            let group = self.group(next, messages, &channel);
            let sent = async {
                if !group.messages.is_empty() && requests.send(group).await.is_err() {
                    // The call ended; its answer tells why.
                    std::future::pending::<()>().await;
                }
                messages.recv().await
            };
            tokio::select! {
                answer = &mut call => return Ended::Broken(answer.err().unwrap_or_else(|| tonic::Status::ok("closed"))),
                message = sent => match message {
                    Some(message) => next = message,
                    None => return Ended::Closed,
                },
            }
        }
    }

    /// Our own, and what we remember of the peer.
    fn identities(&self) -> (String, String) {
        let known = self.identity.known(self.to).map(|known| known.identity).unwrap_or_default();
        (self.identity.own().to_owned(), known)
    }

    /// `first` and what waits behind it; snapshots go their own way.
    fn group(&self, first: Message, messages: &mut mpsc::Receiver<Message>, channel: &Channel) -> StepRequest {
        let (from_identity, to_identity) = self.identities();
        let mut request =
            StepRequest { from: self.from, to: self.to, messages: Vec::new(), from_identity, to_identity };
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(message) = next {
            if message.get_msg_type() == MessageType::MsgSnapshot {
                let (to, events) = (self.to, self.events.clone());
                let call = install_snapshot((self.from, to), self.identities(), channel.clone(), message);
                tokio::spawn(async move {
                    let result = tokio::time::timeout(SNAPSHOT_DEADLINE, call).await;
                    let arrived = matches!(result, Ok(Ok(())));
                    tracing::info!(peer = to, arrived, "sent a snapshot");
                    let _ = events.send(Event::SnapshotSent { to, arrived }).await;
                });
            } else if let Ok(encoded) = message.write_to_bytes() {
                bytes += encoded.len();
                request.messages.push(Bytes::from(encoded));
            }
            if request.messages.len() >= GROUP_MESSAGES || bytes >= GROUP_BYTES {
                break;
            }
            next = messages.try_recv().ok();
        }
        request
    }
}

/// Code of the refusal of a node whose number belongs to another data directory.
pub const OTHER_IDENTITY: &str = "other_identity";

/// True if a peer refuses this node because it remembers another data directory of its number.
pub fn is_other_identity(status: &tonic::Status) -> bool {
    detail_of(status).is_some_and(|detail| detail.code == OTHER_IDENTITY)
}

enum Ended {
    /// This node stops.
    Closed,
    Broken(tonic::Status),
}

async fn install_snapshot(
    (from, to): (u64, u64),
    (from_identity, to_identity): (String, String),
    channel: Channel,
    mut message: Message,
) -> Result<(), tonic::Status> {
    let data = Bytes::from(message.mut_snapshot().take_data().to_vec());
    let encoded = message.write_to_bytes().map_err(|error| tonic::Status::internal(error.to_string()))?;
    let digest = hex(&Sha256::digest(&data));
    let count = data.len().div_ceil(SNAPSHOT_PIECE).max(1);
    let pieces = (0..count).map(move |number| {
        let begin = number * SNAPSHOT_PIECE;
        let end = data.len().min(begin + SNAPSHOT_PIECE);
        InstallSnapshotRequest {
            from,
            to,
            message: if number == 0 { Bytes::from(encoded.clone()) } else { Bytes::new() },
            data: data.slice(begin..end),
            digest: if number + 1 == count { digest.clone() } else { String::new() },
            from_identity: from_identity.clone(),
            to_identity: to_identity.clone(),
        }
    });
    let mut client = RaftServiceClient::new(channel).max_encoding_message_size(MESSAGE_LIMIT);
    client.install_snapshot(tokio_stream::iter(pieces)).await.map(drop)
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
