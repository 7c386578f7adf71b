//! The output projection and the full softmax over it, in chunks of the vocabulary.

use std::ops::Range;

use super::elementwise::{exp, exp_f64, largest, ln, sum};
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

/// A row at a decoder position where its target counts.
#[derive(Debug, Clone, Copy)]
struct Active {
    position: usize,
    row: usize,
    target: u32,
    highest: f32,
    /// Sum of exp(logit - highest).
    total: f64,
    target_logit: f32,
}

#[derive(Debug, Default)]
pub struct SoftmaxTrace {
    /// By segment, position and row.
    active: Vec<Active>,
    /// Where the rows of each segment lie among the active ones.
    segments: Vec<Range<usize>>,
    /// [active, size].
    hidden: Vec<f32>,
    hidden_gradient: Vec<f32>,
    /// At most [`LOGITS_MAX`].
    logits: Vec<f32>,
    chunk: PackedMatrix,
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
            super::elementwise::add_assign(pass.instructions, row, bias);
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

    /// Adds weight * cross entropy * scale of each target to its row's loss; `outputs` is [T, rows, size].
    pub fn full(
        &self,
        pass: &Pass<'_>,
        packed: &PackedMatrix,
        joined: &Joined,
        outputs: &[f32],
        losses: &mut [f64],
        trace: &mut SoftmaxTrace,
    ) {
        self.collect(pass, joined, outputs, trace);
        let SoftmaxTrace { active, hidden, logits, .. } = trace;
        for words in self.chunks() {
            let blocks = hidden.chunks(BLOCK_ROWS * self.size).zip(active.chunks_mut(BLOCK_ROWS));
            for (hidden, active) in blocks {
                self.logits(pass, packed, hidden, &words, logits);
                for (logits, active) in logits.chunks_exact_mut(words.len()).zip(active) {
                    if words.contains(&(active.target as usize)) {
                        active.target_logit = logits[active.target as usize - words.start];
                    }
                    let (highest, total) = sum_of_exp(pass.instructions, logits);
                    if highest > active.highest {
                        // Far below: exp_f64 is defined down to -700, and e^-700 adds nothing.
                        let gap = f64::from(active.highest) - f64::from(highest);
                        active.total = active.total * exp_f64(gap.max(-700.0)) + f64::from(total);
                        active.highest = highest;
                    } else {
                        let gap = f64::from(highest) - f64::from(active.highest);
                        active.total += f64::from(total) * exp_f64(gap.max(-700.0));
                    }
                }
            }
        }
        for active in active {
            let entropy = ln(active.total) + (f64::from(active.highest) - f64::from(active.target_logit));
            losses[active.row] += factor(joined, pass.rows, active) * entropy;
        }
    }

    fn collect(&self, pass: &Pass<'_>, joined: &Joined, outputs: &[f32], trace: &mut SoftmaxTrace) {
        trace.active.clear();
        trace.segments.clear();
        trace.hidden.clear();
        for segment in &joined.segments {
            let start = trace.active.len();
            for position in 0..segment.target_len {
                for row in segment.rows.clone() {
                    let index = position * pass.rows + row;
                    if joined.weights[index] != 0.0 {
                        let (target, highest) = (joined.targets[index], f32::NEG_INFINITY);
                        trace.active.push(Active { position, row, target, highest, total: 0.0, target_logit: 0.0 });
                        trace.hidden.extend_from_slice(&outputs[index * self.size..(index + 1) * self.size]);
                    }
                }
            }
            trace.segments.push(start..trace.active.len());
        }
    }

    /// After [`Projection::full`]: gradients of `outputs`, and dense gradients of weight and bias of each micro-batch.
    #[allow(clippy::too_many_arguments)]
    pub fn full_back(
        &self,
        pass: &Pass<'_>,
        packed: &PackedMatrix,
        joined: &Joined,
        output_gradients: &mut Vec<f32>,
        trace: &mut SoftmaxTrace,
        scratch: &mut Scratch,
        gradients: &mut [Gradient],
    ) {
        let (size, layout) = (self.size, &pass.params.layout);
        let SoftmaxTrace { active, segments, hidden, hidden_gradient, logits, chunk } = trace;
        sized(hidden_gradient, hidden.len());
        hidden_gradient.fill(0.0);
        for gradient in &mut *gradients {
            dense(gradient, layout, self.weight).fill(0.0);
            dense(gradient, layout, self.bias).fill(0.0);
        }
        for words in self.chunks() {
            let wide = words.start * size..words.end * size;
            chunk.pack(Rows::new(&pass.params.get(self.weight)[wide.clone()], size));
            for (segment, gradient) in segments.iter().zip(&mut *gradients) {
                for start in segment.clone().step_by(BLOCK_ROWS) {
                    let range = start..segment.end.min(start + BLOCK_ROWS);
                    let hidden = &hidden[range.start * size..range.end * size];
                    self.logits(pass, packed, hidden, &words, logits);
                    for (logits, active) in logits.chunks_exact_mut(words.len()).zip(&active[range.clone()]) {
                        let factor = factor(joined, pass.rows, active);
                        scale_exp(pass.instructions, logits, active.highest, (factor / active.total) as f32);
                        if words.contains(&(active.target as usize)) {
                            logits[active.target as usize - words.start] -= factor as f32;
                        }
                    }
                    let rows = Rows::new(logits, words.len());
                    let out = &mut hidden_gradient[range.start * size..range.end * size];
                    multiply(pass.instructions, rows, chunk, out, size, true);
                    let out = &mut dense(gradient, layout, self.weight)[wide.clone()];
                    multiply_transposed(pass.instructions, rows, Rows::new(hidden, size), out, size, true, scratch);
                    let out = &mut dense(gradient, layout, self.bias)[words.clone()];
                    for row in logits.chunks_exact(words.len()) {
                        super::elementwise::add_assign(pass.instructions, out, row);
                    }
                }
            }
        }
        sized(output_gradients, joined.target_len * pass.rows * size);
        output_gradients.fill(0.0);
        for (active, gradient) in active.iter().zip(hidden_gradient.chunks_exact(size)) {
            let start = (active.position * pass.rows + active.row) * size;
            output_gradients[start..start + size].copy_from_slice(gradient);
        }
    }
}

/// What the cross entropy of this target counts in the loss.
fn factor(joined: &Joined, rows: usize, active: &Active) -> f64 {
    f64::from(joined.weights[active.position * rows + active.row]) * joined.scales[active.row]
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
