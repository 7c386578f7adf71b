//! From text files to micro-batches.
//!
//! ```text
//! files ─► lines (checked) ─► counts ─► vocabulary ─┐
//!                   └──────────── tokenizer ────────┴─► ids ─► pairs in buckets ─► order ─► feed ─► micro-batch
//! ```
//!
//! `prepare` goes from files to ids and leaves them in storage with a digest beside each; every replica then reads
//! pairs and draws its micro-batches from a feed, which gives the same ones to any replica that asks.

pub mod batch;
pub mod buckets;
pub mod counts;
pub mod dialog_files;
pub mod dialogs;
pub mod digest;
pub mod encoding;
pub mod error;
pub mod evaluation;
pub mod feed;
pub mod files;
pub mod ids;
pub mod lines;
pub mod local;
pub mod micro_batch;
pub mod order;
pub mod pairs;
pub mod prepare;
pub mod tokenizer;
pub mod vocabulary;
mod vocabulary_file;

/// Takes a line for the log, without its end.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// Long work says where it is each time it has gone through so many lines.
const PROGRESS_LINES: u64 = 100_000;
