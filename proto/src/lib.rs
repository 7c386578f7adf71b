//! Messages between clients, coordinator, agents and replicas, and those that lie in the Raft log.

/// The wire: `coord.v1`.
pub mod v1 {
    #![allow(clippy::all)]
    tonic::include_proto!("coord.v1");
}

/// Persisted: additive only.
pub mod log {
    pub mod v1 {
        #![allow(clippy::all)]
        tonic::include_proto!("coord.log.v1");
    }
}

/// Between coordinator nodes.
pub mod peer {
    pub mod v1 {
        #![allow(clippy::all)]
        tonic::include_proto!("coord.peer.v1");
    }
}
