//! The services: convert, call the handle, convert.

mod ask;
pub mod cluster_service;
pub mod job_service;
mod logs;
pub mod raft_service;
pub mod status;
mod warnings;
pub mod worker_service;
