//! Messages between clients, coordinator, agents and replicas, and those that lie in the Raft log.

#[cfg(feature = "services")]
pub mod detail;

/// The wire: `coord.v1`.
pub mod v1 {
    #![allow(clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/coord.v1.rs"));
}

/// Persisted: additive only.
pub mod log {
    pub mod v1 {
        #![allow(clippy::all)]
        include!(concat!(env!("OUT_DIR"), "/coord.log.v1.rs"));
    }
}

/// Between coordinator nodes.
pub mod peer {
    pub mod v1 {
        #![allow(clippy::all)]
        include!(concat!(env!("OUT_DIR"), "/coord.peer.v1.rs"));
    }
}
