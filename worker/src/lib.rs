//! The worker: an agent that runs replicas, and the replicas that train.

pub mod checkpoint;
pub mod collective;
pub mod data;
pub mod model;
pub mod random;
pub mod train;
pub mod translate;
