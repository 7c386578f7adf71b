//! The stream to the leader: opened, lost and opened again, for as long as the agent lives.

use std::collections::BTreeSet;
use std::time::Duration;

use coord_proto::detail::{detail_of, is_no_grpc};
use coord_proto::v1::worker_service_client::WorkerServiceClient;
use coord_proto::v1::{AgentMessage, LeaderMessage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ATTACH_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
const MESSAGE_LIMIT: usize = 4 << 20;
const QUEUE: usize = 1024;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub enum LinkEvent {
    /// A stream opens; what is sent goes to this leader. The first message must be the registration.
    Open(mpsc::Sender<AgentMessage>),
    Message(Box<LeaderMessage>),
    Closed,
}

/// Never ends by itself.
pub async fn keep(addresses: Vec<String>, events: mpsc::Sender<LinkEvent>) {
    let mut next = 0;
    let mut hint: Option<String> = None;
    let mut pause = PAUSE_FIRST;
    // Each reason of each address is told once until there is a stream again.
    let mut told = BTreeSet::new();
    loop {
        let address = hint.take().unwrap_or_else(|| addresses[next % addresses.len()].clone());
        let ended = match open(&address, &events).await {
            Ok(Some(stream)) => {
                // A new leader is elected within a second or two of the old one's end: that is no time for long pauses.
                pause = PAUSE_FIRST;
                told.clear();
                tracing::info!(address, "attached to the coordinator");
                pass_on(stream, &events).await
            }
            Ok(None) => return,
            Err(status) => Err(status),
        };
        match ended {
            Ok(Ended::AfterMessages) => tracing::info!(address, "the coordinator closed the stream; trying on"),
            Ok(Ended::ListenerGone) => return,
            Err(status) => {
                hint = leader(&status).filter(|leader| *leader != address);
                if hint.is_none() && told.insert(format!("{address}: {}", status.message())) {
                    let what = match is_no_grpc(&status) {
                        true => "what answers is no coordinator; is it the port of `coord serve --http`? trying on",
                        false => "no stream to the coordinator; trying on",
                    };
                    tracing::info!(address, reason = status.message(), "{what}");
                }
            }
        }
        if events.send(LinkEvent::Closed).await.is_err() {
            return;
        }
        if hint.is_none() {
            next += 1;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

enum Ended {
    AfterMessages,
    ListenerGone,
}

/// Nothing if nobody listens any more.
async fn open(address: &str, events: &mpsc::Sender<LinkEvent>) -> Result<Option<Streaming<LeaderMessage>>, Status> {
    let unavailable = |error: tonic::transport::Error| Status::unavailable(format!("connect: {}", innermost(&error)));
    let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let channel = Endpoint::from_shared(url)
        .map_err(unavailable)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true)
        .connect()
        .await
        .map_err(unavailable)?;
    let mut client = WorkerServiceClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    let (sender, receiver) = mpsc::channel(QUEUE);
    if events.send(LinkEvent::Open(sender)).await.is_err() {
        return Ok(None);
    }
    let opened = tokio::time::timeout(ATTACH_TIMEOUT, client.attach(ReceiverStream::new(receiver))).await;
    let opened = opened.map_err(|_| Status::deadline_exceeded("no answer to the registration"))??;
    Ok(Some(opened.into_inner()))
}

async fn pass_on(mut stream: Streaming<LeaderMessage>, events: &mpsc::Sender<LinkEvent>) -> Result<Ended, Status> {
    while let Some(message) = stream.message().await? {
        if events.send(LinkEvent::Message(Box::new(message))).await.is_err() {
            return Ok(Ended::ListenerGone);
        }
    }
    Ok(Ended::AfterMessages)
}

fn leader(status: &Status) -> Option<String> {
    detail_of(status).map(|detail| detail.leader).filter(|leader| !leader.is_empty())
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = source.to_string();
        next = source.source();
    }
    text
}
