//! A job's log as one stream of lines, from a vector of positions to the end of what there is, or of the job.

mod lines;
mod reader;
mod source;

use std::time::Duration;

use coord_common::JobId;
use coord_proto::v1::{ReadLogsRequest, ReadLogsResponse};
use tokio::sync::mpsc;
use tonic::{Code, Status};

use super::status::plain;
use crate::handle::HandleError;
use crate::leader::Leader;
use reader::{Progress, Reader};

pub type Outgoing = mpsc::Sender<Result<ReadLogsResponse, Status>>;

/// Between two looks at logs that had nothing new, and the least time between them when the state changes.
const PAUSE: Duration = Duration::from_millis(200);
const PACE: Duration = Duration::from_millis(50);
/// A silent stream says so this often, so that its reader can tell it from a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A reader that takes nothing for this long is let go.
const SEND_DEADLINE: Duration = Duration::from_secs(60);

/// Serves one stream to its end.
pub async fn serve(leader: Leader, job: JobId, request: ReadLogsRequest, outgoing: Outgoing) {
    if let Err(status) = follow(&leader, &job, &request, &outgoing).await {
        let _ = outgoing.send_timeout(Err(status), SEND_DEADLINE).await;
    }
}

async fn follow(leader: &Leader, job: &JobId, request: &ReadLogsRequest, outgoing: &Outgoing) -> Result<(), Status> {
    let mut reader = Reader::new(leader.clone(), job.clone(), request);
    let mut views = leader.handle().views();
    let mut said = tokio::time::Instant::now();
    loop {
        views.borrow_and_update();
        // A node that lost the lead hears no agents: the reader goes on elsewhere, from its positions.
        leader.handle().require_lead()?;
        let Progress { messages, done } = reader.advance().await?;
        let fruitful = !messages.is_empty();
        for message in messages {
            send(outgoing, message).await?;
            said = tokio::time::Instant::now();
        }
        if done {
            return Ok(());
        }
        if fruitful {
            continue;
        }
        if said.elapsed() >= KEEP_ALIVE {
            send(outgoing, reader.phase_only()).await?;
            said = tokio::time::Instant::now();
        }
        tokio::time::sleep(PACE).await;
        tokio::select! {
            changed = views.changed() => changed.map_err(|_| HandleError::Stopping)?,
            () = tokio::time::sleep(PAUSE) => {}
            () = outgoing.closed() => return Ok(()),
        }
    }
}

async fn send(outgoing: &Outgoing, message: ReadLogsResponse) -> Result<(), Status> {
    let sent = outgoing.send_timeout(Ok(message), SEND_DEADLINE).await;
    sent.map_err(|_| plain(Code::DeadlineExceeded, "slow_reader", "the reader took nothing for 60 s", "read on"))
}
