//! Several micro-batches of one bucket side by side, so that one product serves them all.
//!
//! Rows never influence each other, so the forward and backward passes over joined rows give each micro-batch the bits
//! that it would have alone. Only sums over rows (the gradients of parameters) are taken per micro-batch.

use std::ops::Range;

use super::gemm::Rows;
use crate::data::batch::MicroBatch;

const PAD: u32 = 0;

/// One micro-batch inside of a [`Joined`].
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Its rows among all rows.
    pub rows: Range<usize>,
    /// Decoder positions up to its last weighted target; later ones change neither loss nor gradient.
    pub target_len: usize,
}

/// Time-major like [`MicroBatch`]: position `t` of row `r` lies at `t * rows + r`.
#[derive(Debug, Default)]
pub struct Joined {
    pub rows: usize,
    pub source_len: usize,
    /// The largest of the segments'.
    pub target_len: usize,
    pub segments: Vec<Segment>,
    pub encoder: Vec<u32>,
    pub decoder: Vec<u32>,
    pub targets: Vec<u32>,
    pub weights: Vec<f32>,
    pub source_lengths: Vec<u32>,
    /// Per row: 1 / (sum of its weights + 1e-12).
    pub scales: Vec<f64>,
}

impl Joined {
    /// # Panics
    /// If the micro-batches differ in their lengths: they must come from one bucket.
    pub fn fill(&mut self, batches: &[&MicroBatch]) {
        self.segments.clear();
        self.source_lengths.clear();
        self.scales.clear();
        self.rows = batches.iter().map(|batch| batch.rows).sum();
        self.source_len = batches.first().map_or(0, |batch| batch.source_len);
        let target_len = batches.first().map_or(0, |batch| batch.target_len);
        let mut start = 0;
        for batch in batches {
            assert_eq!((batch.source_len, batch.target_len), (self.source_len, target_len), "buckets differ");
            let last = batch.weights.iter().rposition(|weight| *weight != 0.0);
            let target_len = last.map_or(0, |index| index / batch.rows + 1);
            self.segments.push(Segment { rows: start..start + batch.rows, target_len });
            self.source_lengths.extend_from_slice(&batch.source_lengths);
            self.scales.extend((0..batch.rows).map(|row| {
                let weights = batch.weights.iter().skip(row).step_by(batch.rows);
                1.0 / (weights.map(|weight| f64::from(*weight)).sum::<f64>() + 1e-12)
            }));
            start += batch.rows;
        }
        self.target_len = self.segments.iter().map(|segment| segment.target_len).max().unwrap_or(0);
        interleave(batches, |batch| &batch.encoder, self.source_len, &mut self.encoder);
        interleave(batches, |batch| &batch.decoder, self.target_len, &mut self.decoder);
        interleave(batches, |batch| &batch.targets, self.target_len, &mut self.targets);
        interleave(batches, |batch| &batch.weights, self.target_len, &mut self.weights);
    }

    /// Sources alone, for decoding: reversed, padding first; of a source that is too long the last ids remain.
    pub fn fill_sources(&mut self, sources: &[&[u32]], source_len: usize, target_len: usize) {
        let rows = sources.len();
        *self = Self { rows, source_len, target_len, ..std::mem::take(self) };
        self.segments.clear();
        self.segments.push(Segment { rows: 0..rows, target_len });
        self.encoder.clear();
        self.encoder.resize(source_len * rows, PAD);
        self.source_lengths.clear();
        for (row, source) in sources.iter().enumerate() {
            let kept = &source[source.len().saturating_sub(source_len)..];
            for (distance, id) in kept.iter().enumerate() {
                self.encoder[(source_len - 1 - distance) * rows + row] = *id;
            }
            self.source_lengths.push(kept.len() as u32);
        }
    }

    /// Positions that attention may see: from the first real source token, or all.
    pub fn attended_from(&self, row: usize, attend_to_padding: bool) -> usize {
        if attend_to_padding { 0 } else { self.source_len.saturating_sub(self.source_lengths[row] as usize) }
    }
}

fn interleave<'a, T: Copy + 'a>(
    batches: &[&'a MicroBatch],
    field: impl Fn(&'a MicroBatch) -> &'a [T],
    steps: usize,
    out: &mut Vec<T>,
) {
    out.clear();
    for step in 0..steps {
        for batch in batches {
            out.extend_from_slice(&field(batch)[step * batch.rows..(step + 1) * batch.rows]);
        }
    }
}

impl Segment {
    /// The rows of this segment at the first `steps` positions of time-major `data` with `rows` rows of `width`.
    pub fn view<'a>(&self, data: &'a [f32], steps: usize, rows: usize, width: usize) -> Rows<'a> {
        let start = (self.rows.start * width).min(data.len());
        Rows::grouped(&data[start..], steps, self.rows.len(), rows * width, width)
    }
}
