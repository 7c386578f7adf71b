//! From text files to micro-batches.

pub mod batch;
pub mod buckets;
pub mod counts;
pub mod dialog_files;
pub mod dialogs;
pub mod digest;
pub mod encoding;
pub mod error;
pub mod evaluation;
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
