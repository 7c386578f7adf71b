//! One micro-batch of a bucket, laid out for the model.

use serde::Serialize;

/// Time-major: position `t` of sample `r` lies at `t * rows + r`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MicroBatch {
    pub bucket: usize,
    /// Samples; may be 0.
    pub rows: usize,
    /// S and T of the bucket.
    pub source_len: usize,
    pub target_len: usize,
    /// `[S, rows]`: ids, PAD up to S, the whole reversed (PADs come first).
    pub encoder: Vec<u32>,
    /// `[T, rows]`: GO, target ids with EOS, PAD up to T.
    pub decoder: Vec<u32>,
    /// `[T, rows]`: decoder input one position later; 0 at the last.
    pub targets: Vec<u32>,
    /// `[T, rows]`: 0 where the target is PAD and at the last position, else 1.
    pub weights: Vec<f32>,
    /// `[rows]`: real source tokens of each sample (the attention mask).
    pub source_lengths: Vec<u32>,
    /// `[rows]`: line number of each sample in the training pair, from 0.
    pub sample_ids: Vec<u64>,
}
