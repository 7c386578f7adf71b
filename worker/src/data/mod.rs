//! From text files to micro-batches.

pub mod batch;
