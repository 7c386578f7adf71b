//! Where agents attach.

use coord_proto::v1::worker_service_server::WorkerService;
use coord_proto::v1::{AgentMessage, LeaderMessage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::leader::{Leader, streams};

/// Messages to one agent that may wait.
const OUTGOING: usize = 256;

pub struct Workers {
    pub leader: Leader,
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type AttachStream = ReceiverStream<Result<LeaderMessage, Status>>;

    async fn attach(&self, request: Request<Streaming<AgentMessage>>) -> Result<Response<Self::AttachStream>, Status> {
        self.leader.handle().require_lead()?;
        let (outgoing, messages) = mpsc::channel(OUTGOING);
        // The answer begins before the agent has registered: an agent may wait for it before it speaks.
        tokio::spawn(streams::serve(self.leader.clone(), request.into_inner(), outgoing));
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}
