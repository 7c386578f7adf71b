//! Sampled softmax: each target against the candidates of its decoder position.
//!
//! logit(id) = h . W[id] + b[id] - ln(expected count of id); candidates equal to the target are left out.

use super::elementwise::{dot_product, exp, largest, ln, sum};
use super::gemm::{PackedMatrix, Rows, multiply};
use super::instructions::kernel;
use super::joined::{Joined, Segment};
use super::linear::{Pass, look_up, sized};
use super::negatives::Negatives;
use super::softmax::Projection;
use crate::train::gradient::Gradient;

#[derive(Debug, Default)]
pub struct SampledTrace {
    /// [decoder timeline, samples]: logits, then their gradients.
    logits: Vec<f32>,
    /// Gradients of the targets' logits.
    targets: Vec<f32>,
    /// W[ids] of one position, as it is and packed for both directions.
    gathered: Vec<f32>,
    forward: PackedMatrix,
    backward: PackedMatrix,
    /// What is added to the logits of the candidates of one position: b[id] - ln(expected count).
    offsets: Vec<f32>,
    /// For each id of the vocabulary, its place among the row gradients of the segment at hand.
    slots: Vec<u32>,
    /// The places of the candidates of one position.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Projection {
    /// Adds weight * cross entropy * scale of each target to its row's loss, and sets the gradients of `outputs`, both
    /// along the decoder's timeline.
    #[allow(clippy::too_many_arguments)]
    pub fn sampled(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        negatives: &Negatives,
        outputs: &[f32],
        losses: &mut [f64],
        output_gradients: &mut Vec<f32>,
        trace: &mut SampledTrace,
    ) {
        let time = &joined.decoder_time;
        let samples = negatives.positions.first().map_or(0, |list| list.ids.len());
        sized(&mut trace.logits, time.total() * samples);
        sized(&mut trace.targets, time.total());
        sized(output_gradients, time.total() * self.size);
        for t in 0..time.steps() {
            let range = time.range(t..t + 1, self.size);
            let gradients = &mut output_gradients[range.clone()];
            self.position(pass, joined, negatives, t, &outputs[range], losses, gradients, trace);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn position(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        negatives: &Negatives,
        t: usize,
        outputs: &[f32],
        losses: &mut [f64],
        output_gradients: &mut [f32],
        trace: &mut SampledTrace,
    ) {
        let (size, ids) = (self.size, &negatives.positions[t].ids);
        let (weight, bias) = (pass.params.get(self.weight), pass.params.get(self.bias));
        look_up(weight, ids, size, &mut trace.gathered);
        trace.forward.pack_transposed(Rows::new(&trace.gathered, size));
        trace.backward.pack(Rows::new(&trace.gathered, size));
        trace.offsets.clear();
        let offset = |id: u32| bias[id as usize] - negatives.log_expected_count(t, id);
        trace.offsets.extend(ids.iter().map(|id| offset(*id)));
        let samples = ids.len();
        let logits = &mut trace.logits[joined.decoder_time.range(t..t + 1, samples)];
        multiply(pass.instructions, Rows::new(outputs, size), &trace.forward, logits, samples, false);

        let start = joined.decoder_time.start(t);
        let row_of = |id: u32| &weight[id as usize * size..(id as usize + 1) * size];
        let rows = outputs.chunks_exact(size).zip(logits.chunks_exact_mut(samples));
        for (row, ((output, logits), loss)) in rows.zip(losses).enumerate() {
            let id = joined.targets[start + row];
            let logit = dot_product(pass.instructions, output, row_of(id)) + offset(id);
            let hit = ids.iter().position(|other| *other == id).unwrap_or(samples);
            let factor = f64::from(joined.weights[start + row]) * joined.scales[row];
            let (entropy, gradient) =
                cross_entropy(pass.instructions, logits, &trace.offsets, hit, logit, factor as f32);
            *loss += factor * entropy;
            trace.targets[start + row] = gradient;
        }
        multiply(pass.instructions, Rows::new(logits, samples), &trace.backward, output_gradients, size, false);
        for (row, gradient) in output_gradients.chunks_exact_mut(size).enumerate() {
            add_scaled(pass.instructions, gradient, trace.targets[start + row], row_of(joined.targets[start + row]));
        }
    }

    /// Row gradients of weight and bias of one micro-batch, after [`Projection::sampled`].
    #[allow(clippy::too_many_arguments)]
    pub fn sampled_gradients(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        segment: &Segment,
        negatives: &Negatives,
        outputs: &[f32],
        trace: &mut SampledTrace,
        gradient: &mut Gradient,
    ) {
        let (size, time) = (self.size, &joined.decoder_time);
        // The segment's rows of each step.
        let steps = (0..time.steps()).scan(&segment.decoder[..], |rest, t| {
            let (here, later) = rest.split_at(rest.partition_point(|row| (*row as usize) < time.start(t + 1)));
            *rest = later;
            (!here.is_empty()).then_some((t, here))
        });
        trace.slots.clear();
        trace.slots.resize(self.vocabulary, ABSENT);
        for (t, rows) in steps.clone() {
            let targets = rows.iter().map(|row| &joined.targets[*row as usize]);
            for id in negatives.positions[t].ids.iter().chain(targets) {
                trace.slots[*id as usize] = 0;
            }
        }
        let [weights, biases] = gradient.rows.get_disjoint_mut([self.weight_slot, self.bias_slot]).expect("two tables");
        weights.rows.clear();
        for (id, slot) in trace.slots.iter_mut().enumerate().filter(|(_, slot)| **slot != ABSENT) {
            *slot = weights.rows.len() as u32;
            weights.rows.push(id as u32);
        }
        (weights.width, biases.width) = (size, 1);
        biases.rows.clone_from(&weights.rows);
        for (values, width) in [(&mut weights.values, size), (&mut biases.values, 1)] {
            values.clear();
            values.resize(weights.rows.len() * width, 0.0);
        }
        for (t, rows) in steps {
            let ids = &negatives.positions[t].ids;
            trace.places.clear();
            trace.places.extend(ids.iter().map(|id| trace.slots[*id as usize]));
            let (weights, biases) = (&mut weights.values, &mut biases.values);
            add_outer(pass.instructions, size, &trace.places, rows, &trace.logits, outputs, weights, biases);
            for row in rows.iter().map(|row| *row as usize) {
                let slot = trace.slots[joined.targets[row] as usize] as usize;
                let output = &outputs[row * size..(row + 1) * size];
                add_scaled(pass.instructions, &mut weights[slot * size..(slot + 1) * size], trace.targets[row], output);
                biases[slot] += trace.targets[row];
            }
        }
    }
}

kernel! {
    /// Of one target against its candidates, without candidate `hit`. The logits become `factor` times their gradients;
    /// returns the cross entropy and the gradient of the target's logit.
    fn cross_entropy(logits: &mut [f32], offsets: &[f32], hit: usize, target: f32, factor: f32) -> (f64, f32) {
        for (logit, offset) in logits.iter_mut().zip(offsets) {
            *logit += offset;
        }
        if let Some(logit) = logits.get_mut(hit) {
            *logit = f32::NEG_INFINITY;
        }
        let highest = largest(logits);
        let highest = if target > highest { target } else { highest };
        for logit in logits.iter_mut() {
            *logit = exp(*logit - highest);
        }
        if let Some(logit) = logits.get_mut(hit) {
            *logit = 0.0;
        }
        let own = exp(target - highest);
        let total = sum(logits) + own;
        let scale = factor / total;
        for logit in logits.iter_mut() {
            *logit *= scale;
        }
        (ln(f64::from(total)) + (f64::from(highest) - f64::from(target)), factor * (own / total - 1.0))
    }
}

kernel! {
    fn add_scaled(out: &mut [f32], factor: f32, values: &[f32]) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = factor.mul_add(*value, *out);
        }
    }
}

kernel! {
    /// For each candidate j and each of the rows in order: weights[place j] += gradient[row, j] output[row], and the
    /// bias likewise.
    fn add_outer(
        size: usize,
        places: &[u32],
        rows: &[u32],
        gradients: &[f32],
        outputs: &[f32],
        weights: &mut [f32],
        biases: &mut [f32],
    ) {
        const WIDTH: usize = 64;
        let samples = places.len();
        for (candidate, place) in places.iter().enumerate() {
            let place = *place as usize;
            let factors = rows.iter().map(|row| gradients[*row as usize * samples + candidate]);
            let (whole, rest) = weights[place * size..(place + 1) * size].as_chunks_mut::<WIDTH>();
            for (index, chunk) in whole.iter_mut().enumerate() {
                let mut sums = *chunk;
                for (factor, row) in factors.clone().zip(rows) {
                    for (sum, value) in sums.iter_mut().zip(&outputs[*row as usize * size + index * WIDTH..][..WIDTH]) {
                        *sum = factor.mul_add(*value, *sum);
                    }
                }
                *chunk = sums;
            }
            let start = size - rest.len();
            for (factor, row) in factors.zip(rows) {
                for (sum, value) in rest.iter_mut().zip(&outputs[*row as usize * size + start..]) {
                    *sum = factor.mul_add(*value, *sum);
                }
                biases[place] += factor;
            }
        }
    }
}
