//! Sampled softmax: each target against the candidates of its decoder position.
//!
//! logit(id) = h . W[id] + b[id] - ln(expected count of id); candidates equal to the target are left out.

use super::elementwise::{dot_product, exp, largest, ln, sum};
use super::gemm::{PackedMatrix, Rows, multiply};
use super::instructions::kernel;
use super::joined::{Joined, Segment};
use super::linear::{Pass, sized};
use super::negatives::Negatives;
use super::softmax::Projection;
use crate::train::gradient::Gradient;

/// A row of the batch at a decoder position where its target counts.
#[derive(Debug, Clone, Copy)]
struct Active {
    position: usize,
    row: usize,
    target: u32,
}

#[derive(Debug, Default)]
pub struct SampledTrace {
    /// By position, then row.
    active: Vec<Active>,
    /// [active, size].
    hidden: Vec<f32>,
    hidden_gradient: Vec<f32>,
    /// [active, samples]: logits, then their gradients.
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
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Projection {
    /// Adds weight * cross entropy * scale of each target to its row's loss, and sets the gradients of `outputs`,
    /// both [T, rows, size].
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
        let (size, rows) = (self.size, pass.rows);
        trace.active.clear();
        trace.hidden.clear();
        for (index, weight) in joined.weights.iter().enumerate() {
            if *weight != 0.0 {
                let active = Active { position: index / rows, row: index % rows, target: joined.targets[index] };
                trace.active.push(active);
                trace.hidden.extend_from_slice(&outputs[index * size..(index + 1) * size]);
            }
        }
        let samples = negatives.positions.first().map_or(0, |list| list.ids.len());
        sized(&mut trace.logits, trace.active.len() * samples);
        sized(&mut trace.targets, trace.active.len());
        sized(&mut trace.hidden_gradient, trace.active.len() * size);
        let mut start = 0;
        while start < trace.active.len() {
            let position = trace.active[start].position;
            let end = start + trace.active[start..].iter().take_while(|active| active.position == position).count();
            self.position(pass, joined, negatives, position, start..end, losses, trace);
            start = end;
        }
        sized(output_gradients, joined.target_len * rows * size);
        output_gradients.fill(0.0);
        for (active, gradient) in trace.active.iter().zip(trace.hidden_gradient.chunks_exact(size)) {
            let start = (active.position * rows + active.row) * size;
            output_gradients[start..start + size].copy_from_slice(gradient);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn position(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        negatives: &Negatives,
        position: usize,
        range: std::ops::Range<usize>,
        losses: &mut [f64],
        trace: &mut SampledTrace,
    ) {
        let (size, ids) = (self.size, &negatives.positions[position].ids);
        let (weight, bias) = (pass.params.get(self.weight), pass.params.get(self.bias));
        super::linear::look_up(weight, ids, size, &mut trace.gathered);
        trace.forward.pack_transposed(Rows::new(&trace.gathered, size));
        trace.backward.pack(Rows::new(&trace.gathered, size));
        trace.offsets.clear();
        trace.offsets.extend(ids.iter().map(|id| bias[*id as usize] - negatives.log_expected_count(position, *id)));
        let samples = ids.len();
        let hidden = &trace.hidden[range.start * size..range.end * size];
        let logits = &mut trace.logits[range.start * samples..range.end * samples];
        multiply(pass.instructions, Rows::new(hidden, size), &trace.forward, logits, samples, false);
        let gradients = &mut trace.hidden_gradient[range.start * size..range.end * size];
        let parts = hidden.chunks_exact(size).zip(logits.chunks_exact_mut(samples));
        let targets = &mut trace.targets[range.clone()];
        for (((hidden, logits), active), target) in parts.zip(&trace.active[range.clone()]).zip(&mut *targets) {
            let id = active.target as usize;
            let row = &weight[id * size..(id + 1) * size];
            let offset = bias[id] - negatives.log_expected_count(position, active.target);
            let logit = dot_product(pass.instructions, hidden, row) + offset;
            let hit = ids.iter().position(|id| *id == active.target).unwrap_or(samples);
            let factor = f64::from(joined.weights[position * pass.rows + active.row]) * joined.scales[active.row];
            let (entropy, gradient) =
                cross_entropy(pass.instructions, logits, &trace.offsets, hit, logit, factor as f32);
            losses[active.row] += factor * entropy;
            *target = gradient;
        }
        multiply(pass.instructions, Rows::new(logits, samples), &trace.backward, gradients, size, false);
        for ((gradient, active), target) in gradients.chunks_exact_mut(size).zip(&trace.active[range]).zip(targets) {
            let id = active.target as usize;
            add_scaled(pass.instructions, gradient, *target, &weight[id * size..(id + 1) * size]);
        }
    }

    /// Row gradients of weight and bias of one micro-batch, after [`Projection::sampled`].
    pub fn sampled_gradients(
        &self,
        pass: &Pass<'_>,
        segment: &Segment,
        negatives: &Negatives,
        trace: &mut SampledTrace,
        gradient: &mut Gradient,
    ) {
        let size = self.size;
        let mine = |active: &Active| segment.rows.contains(&active.row);
        trace.slots.clear();
        trace.slots.resize(self.vocabulary, ABSENT);
        let mut marked = usize::MAX;
        for active in trace.active.iter().filter(|active| mine(active)) {
            trace.slots[active.target as usize] = 0;
            if active.position != marked {
                marked = active.position;
                for id in &negatives.positions[marked].ids {
                    trace.slots[*id as usize] = 0;
                }
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
        let mut start = 0;
        while let Some(first) = trace.active[start..].iter().position(mine) {
            let first = start + first;
            let position = trace.active[first].position;
            let same = |active: &&Active| active.position == position && mine(active);
            let end = first + trace.active[first..].iter().take_while(same).count();
            let ids = &negatives.positions[position].ids;
            trace.places.clear();
            trace.places.extend(ids.iter().map(|id| trace.slots[*id as usize]));
            let hidden = &trace.hidden[first * size..end * size];
            let logits = &trace.logits[first * ids.len()..end * ids.len()];
            let (weights, biases) = (&mut weights.values, &mut biases.values);
            add_outer(pass.instructions, size, &trace.places, logits, hidden, weights, biases);
            for (index, active) in trace.active[first..end].iter().enumerate() {
                let slot = trace.slots[active.target as usize] as usize;
                let factor = trace.targets[first + index];
                let hidden = &hidden[index * size..(index + 1) * size];
                add_scaled(pass.instructions, &mut weights[slot * size..(slot + 1) * size], factor, hidden);
                biases[slot] += factor;
            }
            start = end;
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
    /// For each candidate j and each row a in order: weights[place j] += gradient[a, j] hidden[a], and the bias likewise.
    fn add_outer(
        size: usize,
        places: &[u32],
        gradients: &[f32],
        hidden: &[f32],
        weights: &mut [f32],
        biases: &mut [f32],
    ) {
        const WIDTH: usize = 64;
        let samples = places.len();
        for (candidate, place) in places.iter().enumerate() {
            let place = *place as usize;
            let (whole, rest) = weights[place * size..(place + 1) * size].as_chunks_mut::<WIDTH>();
            for (index, chunk) in whole.iter_mut().enumerate() {
                let mut sums = *chunk;
                for (gradients, hidden) in gradients.chunks_exact(samples).zip(hidden.chunks_exact(size)) {
                    let factor = gradients[candidate];
                    for (sum, value) in sums.iter_mut().zip(&hidden[index * WIDTH..][..WIDTH]) {
                        *sum = factor.mul_add(*value, *sum);
                    }
                }
                *chunk = sums;
            }
            let start = size - rest.len();
            for (gradients, hidden) in gradients.chunks_exact(samples).zip(hidden.chunks_exact(size)) {
                for (sum, value) in rest.iter_mut().zip(&hidden[start..]) {
                    *sum = gradients[candidate].mul_add(*value, *sum);
                }
                biases[place] += gradients[candidate];
            }
        }
    }
}
