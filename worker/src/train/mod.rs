//! Training without a coordinator: parameters, gradients, optimizer, schedule and the step loop.

pub mod accumulate;
pub mod gradient;
pub mod params;
pub mod tree;
