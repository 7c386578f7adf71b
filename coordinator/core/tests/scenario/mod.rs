//! The language of scenarios: words of a line, what they do, how answers read.

pub mod answer;
pub mod line;
pub mod runner;
