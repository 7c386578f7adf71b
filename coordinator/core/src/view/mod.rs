//! The state as people and programs outside see it: messages of `coord.v1`, made from the state and what the leader hears.

mod job;
mod list;
mod service;
mod worker;

pub use job::job;
pub use list::{JobFilter, JobPage, list};
pub use service::{SERVICE, service_lines};
pub use worker::{worker, workers};
