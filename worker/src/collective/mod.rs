//! What the ranks of a generation do together: add along the fixed tree, gather, abort.

mod exchange;
mod frame;
mod local;
pub mod tcp;

use std::ops::Range;

use thiserror::Error;

pub use local::LocalCollective;
pub use tcp::TcpCollective;

use crate::train::gradient::Gradient;

/// The sum over a whole step, equal on every rank, and each rank's note.
#[derive(Debug, PartialEq)]
pub struct Reduced {
    pub gradient: Gradient,
    /// By rank.
    pub notes: Vec<Vec<u8>>,
}

/// A sum over one node of the tree.
pub type Part = (Range<u32>, Gradient);

pub trait Collective: Send {
    fn rank(&self) -> u32;

    fn world_size(&self) -> u32;

    /// Adds all parts of all ranks along the tree over `micro_batches` leaves. Every rank calls it with the largest
    /// subtrees it owns; the parts of all ranks cover the tree. `note` is small and reaches every rank as it is.
    fn reduce(&mut self, micro_batches: u32, parts: Vec<Part>, note: Vec<u8>) -> Result<Reduced, CollectiveError>;

    /// The bytes of every rank, by rank.
    fn gather(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, CollectiveError>;

    /// The bytes of rank `root`, on every rank. `bytes` is looked at on the root only.
    fn broadcast(&mut self, root: u32, bytes: Vec<u8>) -> Result<Vec<u8>, CollectiveError>;

    /// Ends every call that waits, on this rank, and every later one.
    fn abort_handle(&self) -> AbortHandle;
}

/// Cloneable; usable from any thread.
#[derive(Clone)]
pub struct AbortHandle {
    abort: std::sync::Arc<dyn Fn() + Send + Sync>,
}

impl AbortHandle {
    pub fn new(abort: impl Fn() + Send + Sync + 'static) -> Self {
        Self { abort: std::sync::Arc::new(abort) }
    }

    pub fn abort(&self) {
        (self.abort)();
    }
}

/// In words that name what happened to the peer, not to our buffer.
fn how(source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::UnexpectedEof => "it closed its connection".to_owned(),
        _ => source.to_string(),
    }
}

#[derive(Debug, Error)]
pub enum CollectiveError {
    #[error("lost rank {rank}: {}", how(source))]
    PeerLost { rank: u32, source: std::io::Error },
    #[error("collective was aborted")]
    Aborted,
    #[error("rank {rank} is at operation {got}, this rank at {expected}: the ranks no longer run the same program")]
    OutOfStep { rank: u32, expected: u64, got: u64 },
    #[error("rank {rank} sent {bytes} bytes where at most {limit} were expected")]
    TooLarge { rank: u32, bytes: u64, limit: u64 },
    #[error("rank {rank} sent a malformed message: {what}")]
    Malformed { rank: u32, what: &'static str },
    #[error("listen for peers on {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error("rank {rank} at {endpoint} could not be reached within {seconds} s: {last}")]
    Unreachable { rank: u32, endpoint: String, seconds: u64, last: String },
    #[error("rank {rank} turned this process away: {reason}")]
    TurnedAway { rank: u32, reason: String },
}

#[cfg(test)]
mod conformance;
