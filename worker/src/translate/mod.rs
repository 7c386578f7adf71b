//! The translate trainer: a sequence-to-sequence model from pairs of text lines, as the old `translate.py`.

pub mod decode;
mod dump;
pub mod error;
mod evaluate;
pub mod flags;
mod lines;
pub mod observer;
pub mod recipe;
mod results;
pub mod self_test;
pub mod settings;
pub mod setup;
mod start;
pub mod state;
mod step;
