//! How an agent introduces itself on every stream it opens.

use crate::ids::{Incarnation, WorkerId};
use crate::rank::ReplicaKey;
use crate::resources::{Device, NumericClass};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub worker: WorkerId,
    /// Host name and work directory, for people.
    pub name: String,
    pub incarnation: Incarnation,
    pub slots: u32,
    pub device: Device,
    pub numeric_class: NumericClass,
    pub version: String,
    /// Address that peers can reach replicas under.
    pub host: String,
    /// Replicas that the agent holds now.
    pub alive: Vec<ReplicaKey>,
    /// Highest fact sequence that any leader has acknowledged to this incarnation.
    pub facts_acknowledged: u64,
}
