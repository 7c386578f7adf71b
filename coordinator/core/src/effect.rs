//! What should happen outside the state after an entry: followers drop it, a new leader derives it again.

use std::fmt;

use coord_common::{Incarnation, JobId, Order, WorkerId};

use crate::reply::Reply;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub reply: Reply,
    pub effects: Vec<Effect>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A hint for speed: `orders::reconcile` tells the same again on every stream.
    Send { worker: WorkerId, order: Order },
    /// All facts of this incarnation up to the sequence are committed.
    Acknowledge { worker: WorkerId, incarnation: Incarnation, sequence: u64 },
    /// Readers of the job should look again.
    JobChanged { job: JobId },
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Send { worker, order } => write!(formatter, "to {worker}: {order}"),
            Effect::Acknowledge { worker, sequence, .. } => write!(formatter, "to {worker}: acknowledge {sequence}"),
            Effect::JobChanged { job } => write!(formatter, "changed {job}"),
        }
    }
}
