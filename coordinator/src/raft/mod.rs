//! Raft: the replicated log below the coordinator's state, generic over what the entries hold.
//!
//! [`driver::Driver`] is a step function over one `RawNode`; it persists through a [`log::Log`] and hands everything
//! else back as [`driver::Effect`]s. Threads, sockets and the state machine live outside.

pub mod contacts;
pub mod driver;
pub mod identity;
pub mod introduction;
pub mod log;
pub mod membership;
pub mod proposals;
mod reads;
mod ready;
pub mod snapshot;
mod standing;
pub mod transport;

#[cfg(test)]
mod tests;
