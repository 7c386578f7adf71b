//! The translate trainer: a sequence-to-sequence model from pairs of text lines, as the old `translate.py`.

pub mod decode;
mod dump;
pub mod ending;
pub mod error;
pub mod estimate;
mod evaluate;
pub mod flags;
mod interval;
mod lines;
pub mod observer;
mod pace;
pub mod recipe;
mod results;
mod run;
pub mod self_test;
pub mod settings;
pub mod setup;
mod start;
pub mod state;
mod step;
