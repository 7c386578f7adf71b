//! The order in which jobs wait: larger priority first, then earlier submission.

use std::cmp::Reverse;

use coord_common::JobId;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePlace {
    pub priority: Reverse<u32>,
    pub submission: u64,
    pub job: JobId,
}
