//! Training without a coordinator: parameters, gradients, optimizer, schedule and the step loop.

pub mod accumulate;
pub mod gradient;
pub mod note;
pub mod optimizer;
pub mod params;
pub mod saver;
pub mod schedule;
pub mod tree;
