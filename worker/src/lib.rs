//! The worker: an agent that runs replicas, and the replicas that train.

pub mod agent;
pub mod answer;
pub mod checkpoint;
pub mod collective;
pub mod commands;
pub mod data;
pub mod files;
pub mod launch;
pub mod memory;
pub mod model;
pub mod numeric_class;
pub mod random;
pub mod replica;
pub mod train;
pub mod translate;
