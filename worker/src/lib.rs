//! The worker: an agent that runs replicas, and the replicas that train.

pub mod checkpoint;
pub mod collective;
pub mod data;
pub mod files;
pub mod model;
pub mod numeric_class;
pub mod random;
pub mod train;
pub mod translate;
