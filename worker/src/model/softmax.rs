//! The output projection and the full softmax over it, in chunks of the vocabulary.

use std::ops::Range;

use super::elementwise::{add_assign, exp, exp_f64, largest, ln, sum};
use super::gemm::{PANEL, PackedMatrix, Rows, Scratch, multiply, multiply_panels, multiply_transposed};
use super::instructions::kernel;
use super::joined::Joined;
use super::linear::{Pass, dense, sized};
use crate::train::gradient::Gradient;
use crate::train::params::{GradientKind, Layout, ParamSpec, Params};

/// Words whose logits are computed together: a constant, because the order of the sums depends on it.
const CHUNK_WORDS: usize = 1024;

/// Rows whose logits are computed together: any number gives the same bits, this one bounds the memory.
const BLOCK_ROWS: usize = 256;

/// No buffer of rows x words is larger than this many elements.
pub const LOGITS_MAX: usize = CHUNK_WORDS * BLOCK_ROWS;

/// logit(word) = h . weight[word] + bias[word].
#[derive(Debug, Clone)]
pub struct Projection {
    pub(super) size: usize,
    pub(super) vocabulary: usize,
    pub(super) weight: usize,
    pub(super) bias: usize,
    /// Positions among the row gradients; unused when the gradients are dense.
    pub(super) weight_slot: usize,
    pub(super) bias_slot: usize,
}

/// What the passes over the vocabulary have found out about a target.
#[derive(Debug, Clone, Copy)]
struct Found {
    highest: f32,
    /// Sum of exp(logit - highest).
    total: f64,
    target_logit: f32,
}

const NOTHING_FOUND: Found = Found { highest: f32::NEG_INFINITY, total: 0.0, target_logit: 0.0 };

#[derive(Debug, Default)]
pub struct SoftmaxTrace {
    /// Along the decoder's timeline.
    found: Vec<Found>,
    /// weight * scale of each target.
    factors: Vec<f64>,
    /// At most [`LOGITS_MAX`].
    logits: Vec<f32>,
    chunk: PackedMatrix,
    /// Rows of one segment in one block.
    list: Vec<u32>,
}

impl Projection {
    /// Under sampled softmax a step touches few rows, else all.
    pub fn specs(vocabulary: usize, size: usize, sampled: bool) -> Vec<ParamSpec> {
        let kind = if sampled { ParamSpec::rows } else { ParamSpec::dense };
        vec![kind("projection.weight", &[vocabulary, size]), kind("projection.bias", &[vocabulary])]
    }

    pub fn new(layout: &Layout, vocabulary: usize, size: usize) -> Self {
        let (weight, bias) = (layout.index("projection.weight"), layout.index("projection.bias"));
        let rows = layout.specs()[weight].gradient == GradientKind::Rows;
        let slot = |index| if rows { layout.row_slot(index) } else { usize::MAX };
        Self { size, vocabulary, weight, bias, weight_slot: slot(weight), bias_slot: slot(bias) }
    }

    /// The weight packed for logits of the whole vocabulary.
    pub fn pack(&self, params: &Params, packed: &mut PackedMatrix) {
        packed.pack_transposed(Rows::new(params.get(self.weight), self.size));
    }

    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let vocabulary = self.vocabulary;
        (0..vocabulary).step_by(CHUNK_WORDS).map(move |start| start..vocabulary.min(start + CHUNK_WORDS))
    }

    /// Logits of the words of one chunk, bias included.
    fn logits(&self, pass: &Pass<'_>, packed: &PackedMatrix, hidden: &[f32], words: &Range<usize>, out: &mut Vec<f32>) {
        let rows = Rows::new(hidden, self.size);
        sized(out, rows.count * words.len());
        let panels = words.start / PANEL..words.end.div_ceil(PANEL);
        multiply_panels(pass.instructions, rows, packed, panels, out, words.len(), false);
        let bias = &pass.params.get(self.bias)[words.clone()];
        for row in out.chunks_exact_mut(words.len()) {
            add_assign(pass.instructions, row, bias);
        }
    }

    /// The likeliest word for each row of `hidden`; of equal ones the lowest id.
    pub fn best_words(
        &self,
        pass: &Pass<'_>,
        packed: &PackedMatrix,
        hidden: &[f32],
        trace: &mut SoftmaxTrace,
    ) -> Vec<u32> {
        let mut best = vec![(f32::NEG_INFINITY, 0); hidden.len() / self.size];
        for words in self.chunks() {
            let blocks = hidden.chunks(BLOCK_ROWS * self.size).zip(best.chunks_mut(BLOCK_ROWS));
            for (hidden, best) in blocks {
                self.logits(pass, packed, hidden, &words, &mut trace.logits);
                for (logits, best) in trace.logits.chunks_exact(words.len()).zip(best) {
                    let highest = highest_of(pass.instructions, logits);
                    if highest > best.0 {
                        let place = logits.iter().position(|logit| *logit == highest).unwrap_or(0);
                        *best = (highest, (words.start + place) as u32);
                    }
                }
            }
        }
        best.into_iter().map(|(_, word)| word).collect()
    }

    /// Adds weight * cross entropy * scale of each target to its row's loss; `outputs` lie along the timeline.
    pub fn full(
        &self,
        pass: &Pass<'_>,
        packed: &PackedMatrix,
        joined: &Joined,
        outputs: &[f32],
        losses: &mut [f64],
        trace: &mut SoftmaxTrace,
    ) {
        let SoftmaxTrace { found, factors, logits, .. } = trace;
        let time = &joined.decoder_time;
        found.clear();
        found.resize(time.total(), NOTHING_FOUND);
        for words in self.chunks() {
            let blocks = outputs.chunks(BLOCK_ROWS * self.size).zip(found.chunks_mut(BLOCK_ROWS));
            for ((outputs, found), targets) in blocks.zip(joined.targets.chunks(BLOCK_ROWS)) {
                self.logits(pass, packed, outputs, &words, logits);
                for ((logits, found), target) in logits.chunks_exact_mut(words.len()).zip(found).zip(targets) {
                    if words.contains(&(*target as usize)) {
                        found.target_logit = logits[*target as usize - words.start];
                    }
                    let (highest, total) = sum_of_exp(pass.instructions, logits);
                    found.add(highest, f64::from(total));
                }
            }
        }
        factors.clear();
        for t in 0..time.steps() {
            for (row, loss) in losses[..time.alive(t)].iter_mut().enumerate() {
                let (found, weight) = (&found[time.start(t) + row], joined.weights[time.start(t) + row]);
                let factor = f64::from(weight) * joined.scales[row];
                *loss += factor * (ln(found.total) + (f64::from(found.highest) - f64::from(found.target_logit)));
                factors.push(factor);
            }
        }
    }

    /// After [`Projection::full`]: gradients of `outputs`, and dense gradients of weight and bias of each micro-batch.
    #[allow(clippy::too_many_arguments)]
    pub fn full_back(
        &self,
        pass: &Pass<'_>,
        packed: &PackedMatrix,
        joined: &Joined,
        outputs: &[f32],
        output_gradients: &mut Vec<f32>,
        trace: &mut SoftmaxTrace,
        scratch: &mut Scratch,
        gradients: &mut [Gradient],
    ) {
        let (size, layout, total) = (self.size, &pass.params.layout, joined.decoder_time.total());
        let SoftmaxTrace { found, factors, logits, chunk, list } = trace;
        sized(output_gradients, outputs.len());
        output_gradients.fill(0.0);
        for gradient in &mut *gradients {
            dense(gradient, layout, self.weight).fill(0.0);
            dense(gradient, layout, self.bias).fill(0.0);
        }
        for words in self.chunks() {
            let wide = words.start * size..words.end * size;
            chunk.pack(Rows::new(&pass.params.get(self.weight)[wide.clone()], size));
            for start in (0..total).step_by(BLOCK_ROWS) {
                let block = start..total.min(start + BLOCK_ROWS);
                let outputs = &outputs[block.start * size..block.end * size];
                self.logits(pass, packed, outputs, &words, logits);
                for (logits, row) in logits.chunks_exact_mut(words.len()).zip(block.clone()) {
                    let (found, factor) = (&found[row], factors[row]);
                    scale_exp(pass.instructions, logits, found.highest, (factor / found.total) as f32);
                    let target = joined.targets[row] as usize;
                    if words.contains(&target) {
                        logits[target - words.start] -= factor as f32;
                    }
                }
                let out = &mut output_gradients[block.start * size..block.end * size];
                multiply(pass.instructions, Rows::new(logits, words.len()), chunk, out, size, true);
                for (segment, gradient) in joined.segments.iter().zip(&mut *gradients) {
                    list.clear();
                    let rows = segment.decoder.iter().map(|row| *row as usize).filter(|row| block.contains(row));
                    list.extend(rows.map(|row| (row - block.start) as u32));
                    let left = Rows::listed(logits, list, words.len());
                    let out = &mut dense(gradient, layout, self.weight)[wide.clone()];
                    let right = Rows::listed(outputs, list, size);
                    multiply_transposed(pass.instructions, left, right, out, size, true, scratch);
                    let out = &mut dense(gradient, layout, self.bias)[words.clone()];
                    for row in 0..left.count {
                        add_assign(pass.instructions, out, left.row(row));
                    }
                }
            }
        }
    }
}

impl Found {
    /// Takes in the sum of exp(logit - highest) over further words.
    fn add(&mut self, highest: f32, total: f64) {
        // exp_f64 is defined down to -700, and e^-700 adds nothing.
        let gap = (f64::from(highest) - f64::from(self.highest)).clamp(-700.0, 700.0);
        if gap > 0.0 {
            self.total = self.total * exp_f64(-gap) + total;
            self.highest = highest;
        } else {
            self.total += total * exp_f64(gap);
        }
    }
}

kernel! {
    fn highest_of(logits: &[f32]) -> f32 {
        largest(logits)
    }
}

kernel! {
    /// The largest logit, and the sum of exp(logit - largest); the logits are lost.
    fn sum_of_exp(logits: &mut [f32]) -> (f32, f32) {
        let highest = largest(logits);
        for logit in logits.iter_mut() {
            *logit = exp(*logit - highest);
        }
        (highest, sum(logits))
    }
}

kernel! {
    /// logit = scale exp(logit - highest).
    fn scale_exp(logits: &mut [f32], highest: f32, scale: f32) {
        for logit in logits.iter_mut() {
            *logit = scale * exp(*logit - highest);
        }
    }
}
