//! Several micro-batches of one bucket side by side, so that one product serves them all.
//!
//! Rows never influence each other, so the forward and backward passes over joined rows give each micro-batch the bits
//! that it would have alone. Only sums over rows (the gradients of parameters) are taken per micro-batch.
//!
//! Positions after the last weighted target of a row change neither loss nor gradient and are not computed: rows are
//! sorted by their number of decoder steps, the longest first, and those that have ended fall off the end.

use std::ops::Range;

use crate::data::batch::MicroBatch;

const PAD: u32 = 0;

/// Which rows are alive at each step: always the first ones. Buffers hold the alive rows of all steps without gaps.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Where the rows of each step start, and at the end where the last step ends.
    starts: Vec<usize>,
}

impl Timeline {
    fn fill(&mut self, alive: impl Iterator<Item = usize>) {
        self.starts.clear();
        self.starts.push(0);
        let mut total = 0;
        self.starts.extend(alive.map(|count| {
            total += count;
            total
        }));
    }

    pub fn steps(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Rows of all steps together.
    pub fn total(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Alive rows of a step.
    pub fn alive(&self, t: usize) -> usize {
        self.starts[t + 1] - self.starts[t]
    }

    /// Where the rows of a step start.
    pub fn start(&self, t: usize) -> usize {
        self.starts[t]
    }

    /// The elements of these steps in a buffer of rows that are `width` wide.
    pub fn range(&self, steps: Range<usize>, width: usize) -> Range<usize> {
        self.starts[steps.start] * width..self.starts[steps.end] * width
    }
}

/// Where the rows of one micro-batch lie among the joined ones; in order of step, then row.
#[derive(Debug, Default)]
pub struct Segment {
    /// Rows that belong to it.
    pub rows: Vec<u32>,
    /// Rows of the encoder's timeline.
    pub encoder: Vec<u32>,
    /// Rows of the decoder's timeline.
    pub decoder: Vec<u32>,
    /// For each of these, the row of the state before the step, in a buffer that starts with the first states.
    pub decoder_before: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct Joined {
    pub rows: usize,
    pub source_len: usize,
    /// All rows at every step.
    pub encoder_time: Timeline,
    pub decoder_time: Timeline,
    pub segments: Vec<Segment>,
    /// For each row, its place among the rows of the micro-batches one after the other.
    pub order: Vec<usize>,
    /// Along the timelines.
    pub encoder: Vec<u32>,
    pub decoder: Vec<u32>,
    pub targets: Vec<u32>,
    pub weights: Vec<f32>,
    /// Per row.
    pub source_lengths: Vec<u32>,
    /// Per row: 1 / (sum of its weights + 1e-12).
    pub scales: Vec<f64>,
    /// Per row: micro-batch, row in it, number of decoder steps.
    places: Vec<(usize, usize, usize)>,
}

impl Joined {
    /// # Panics
    /// If the micro-batches differ in their lengths: they must come from one bucket.
    pub fn fill(&mut self, batches: &[&MicroBatch]) {
        self.source_len = batches.first().map_or(0, |batch| batch.source_len);
        let target_len = batches.first().map_or(0, |batch| batch.target_len);
        self.places.clear();
        for (index, batch) in batches.iter().enumerate() {
            assert_eq!((batch.source_len, batch.target_len), (self.source_len, target_len), "buckets differ");
            for row in 0..batch.rows {
                let last = (0..target_len).rposition(|t| batch.weights[t * batch.rows + row] != 0.0);
                self.places.push((index, row, last.map_or(0, |t| t + 1)));
            }
        }
        self.rows = self.places.len();
        self.order.clear();
        self.order.extend(0..self.rows);
        // Stable: rows of one micro-batch keep the order that they have when it is alone.
        self.order.sort_by_key(|row| std::cmp::Reverse(self.places[*row].2));

        self.encoder_time.fill(std::iter::repeat_n(self.rows, self.source_len));
        let longest = self.order.first().map_or(0, |row| self.places[*row].2);
        let alive = |t: usize| self.order.partition_point(|row| self.places[*row].2 > t);
        self.decoder_time.fill((0..longest).map(alive));
        let sorted = || self.order.iter().map(|row| self.places[*row]);
        along(batches, sorted, self.source_len, |_, _| true, |batch| &batch.encoder, &mut self.encoder);
        let alive = |steps: usize, t: usize| t < steps;
        along(batches, sorted, longest, alive, |batch| &batch.decoder, &mut self.decoder);
        along(batches, sorted, longest, alive, |batch| &batch.targets, &mut self.targets);
        along(batches, sorted, longest, alive, |batch| &batch.weights, &mut self.weights);
        self.source_lengths.clear();
        self.source_lengths.extend(sorted().map(|(index, row, _)| batches[index].source_lengths[row]));
        self.scales.clear();
        self.scales.extend(sorted().map(|(index, row, _)| {
            let weights = batches[index].weights.iter().skip(row).step_by(batches[index].rows);
            1.0 / (weights.map(|weight| f64::from(*weight)).sum::<f64>() + 1e-12)
        }));
        self.fill_segments(batches.len());
    }

    fn fill_segments(&mut self, count: usize) {
        self.segments.resize_with(count, Segment::default);
        for segment in &mut self.segments {
            for list in [&mut segment.rows, &mut segment.encoder, &mut segment.decoder, &mut segment.decoder_before] {
                list.clear();
            }
        }
        for (row, place) in self.order.iter().enumerate() {
            self.segments[self.places[*place].0].rows.push(row as u32);
        }
        for Segment { rows, encoder, decoder, decoder_before } in &mut self.segments {
            for t in 0..self.source_len {
                encoder.extend(rows.iter().map(|row| (t * self.rows) as u32 + row));
            }
            for t in 0..self.decoder_time.steps() {
                let before = if t == 0 { 0 } else { self.rows + self.decoder_time.start(t - 1) };
                let alive = &rows[..rows.partition_point(|row| (*row as usize) < self.decoder_time.alive(t))];
                decoder.extend(alive.iter().map(|row| self.decoder_time.start(t) as u32 + row));
                decoder_before.extend(alive.iter().map(|row| before as u32 + row));
            }
        }
    }

    /// Sources alone, for decoding: reversed, padding first; of a source that is too long the last ids remain.
    pub fn fill_sources(&mut self, sources: &[&[u32]], source_len: usize, target_len: usize) {
        let rows = sources.len();
        (self.rows, self.source_len) = (rows, source_len);
        self.encoder_time.fill(std::iter::repeat_n(rows, source_len));
        self.decoder_time.fill(std::iter::repeat_n(rows, target_len));
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

/// Copies a time-major field of all micro-batches along a timeline.
fn along<'a, T: Copy + 'a, Places: Iterator<Item = (usize, usize, usize)>>(
    batches: &[&'a MicroBatch],
    places: impl Fn() -> Places,
    steps: usize,
    alive: impl Fn(usize, usize) -> bool,
    field: impl Fn(&'a MicroBatch) -> &'a [T],
    out: &mut Vec<T>,
) {
    out.clear();
    for t in 0..steps {
        let rows = places().filter(|place| alive(place.2, t));
        out.extend(rows.map(|(index, row, _)| field(batches[index])[t * batches[index].rows + row]));
    }
}
