//! The agent of a host: keeps a stream to the leader, runs replicas, keeps their logs.

mod answers;
mod ended;
mod events;
mod hearing;
mod leftovers;
mod link;
pub mod logs;
mod metrics;
mod outbox;
mod replicas;
pub mod service;
pub mod settings;
pub mod state;
mod tail;
mod unsent;
mod upload;
