//! Models with explicit backward passes; the plain reference of each fast kernel beside it.

pub mod attention;
pub mod decoder;
pub mod dump;
pub mod elementwise;
pub mod encoder;
pub mod gemm;
pub mod gru;
pub mod instructions;
pub mod joined;
pub mod linear;
pub mod negatives;
#[cfg(test)]
mod reference;
pub mod sampled;
pub mod softmax;
pub mod translate;
