//! Additive attention with one head: score = v . tanh(W h + U q + b), softmax over source positions, weighted sum.
//!
//! h are the encoder's outputs; `U q + b` arrives computed. Padding positions are not attended to unless asked for.

use super::elementwise::{column_sums, dot, exp, largest, sum, tanh};
use super::gemm::{Rows, Scratch, multiply_transposed};
use super::instructions::kernel;
use super::joined::{Joined, Segment, Timeline};
use super::linear::{Pass, Weight, dense, sized};
use crate::train::gradient::Gradient;
use crate::train::params::{Layout, ParamSpec, Params};

#[derive(Debug, Clone)]
pub struct Attention {
    size: usize,
    attend_to_padding: bool,
    /// W, [size, size].
    source: usize,
    /// v, [size].
    score: usize,
}

#[derive(Debug, Default)]
pub struct PreparedAttention {
    source: Weight,
}

#[derive(Debug, Default)]
pub struct AttentionTrace {
    /// W h, [S, rows, size].
    keys: Vec<f32>,
    /// [decoder timeline, S]: zero where not attended.
    probabilities: Vec<f32>,
    /// [S, rows, size].
    keys_gradient: Vec<f32>,
    /// [segments, size].
    score_gradient: Vec<f32>,
    row: Vec<f32>,
}

impl Attention {
    pub fn specs(size: usize) -> Vec<ParamSpec> {
        vec![ParamSpec::dense("attention.source.weight", &[size, size]), ParamSpec::dense("attention.score", &[size])]
    }

    pub fn new(layout: &Layout, size: usize, attend_to_padding: bool) -> Self {
        let (source, score) = (layout.index("attention.source.weight"), layout.index("attention.score"));
        Self { size, attend_to_padding, source, score }
    }

    pub fn prepare(&self, params: &Params, prepared: &mut PreparedAttention) {
        prepared.source.pack(Rows::new(params.get(self.source), self.size));
    }

    /// Before the first decoder step: W h for all positions.
    pub fn start(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedAttention,
        encoded: &[f32],
        joined: &Joined,
        trace: &mut AttentionTrace,
    ) {
        sized(&mut trace.keys, encoded.len());
        trace.keys.fill(0.0);
        prepared.source.apply(pass, encoded, &mut trace.keys);
        sized(&mut trace.probabilities, joined.decoder_time.total() * joined.source_len);
    }

    /// `query` is U q + b, `context` receives the weighted sum, both of the rows alive in step `t`.
    #[allow(clippy::too_many_arguments)]
    pub fn step(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        encoded: &[f32],
        t: usize,
        query: &[f32],
        context: &mut [f32],
        trace: &mut AttentionTrace,
    ) {
        let (size, score) = (self.size, pass.params.get(self.score));
        sized(&mut trace.row, size);
        for row in 0..joined.decoder_time.alive(t) {
            let place = Place { row, rows: pass.rows, first: joined.attended_from(row, self.attend_to_padding) };
            let start = (joined.decoder_time.start(t) + row) * joined.source_len;
            let probabilities = &mut trace.probabilities[start..start + joined.source_len];
            let (query, context) = (&query[row * size..][..size], &mut context[row * size..][..size]);
            let work = &mut trace.row;
            attend(pass.instructions, place, score, &trace.keys, encoded, query, work, probabilities, context);
        }
    }

    pub fn start_back(&self, joined: &Joined, trace: &mut AttentionTrace) {
        sized(&mut trace.keys_gradient, trace.keys.len());
        trace.keys_gradient.fill(0.0);
        sized(&mut trace.score_gradient, joined.segments.len() * self.size);
        trace.score_gradient.fill(0.0);
    }

    /// From the gradient of the context of step `t` to that of the query, both of the rows alive in it.
    #[allow(clippy::too_many_arguments)]
    pub fn step_back(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        encoded: &[f32],
        t: usize,
        query: &[f32],
        context_gradient: &[f32],
        query_gradient: &mut [f32],
        trace: &mut AttentionTrace,
    ) {
        let (size, score) = (self.size, pass.params.get(self.score));
        let AttentionTrace { keys, probabilities, keys_gradient, score_gradient, row: scores } = trace;
        sized(scores, joined.source_len);
        for (segment, score_gradient) in joined.segments.iter().zip(score_gradient.chunks_exact_mut(size)) {
            let rows = segment.rows.iter().map(|row| *row as usize);
            for row in rows.take_while(|row| *row < joined.decoder_time.alive(t)) {
                let place = Place { row, rows: pass.rows, first: joined.attended_from(row, self.attend_to_padding) };
                let start = (joined.decoder_time.start(t) + row) * joined.source_len;
                let probabilities = &probabilities[start..start + joined.source_len];
                let range = row * size..(row + 1) * size;
                scores_back(pass.instructions, place, probabilities, encoded, &context_gradient[range.clone()], scores);
                let query_gradient = &mut query_gradient[range.clone()];
                query_gradient.fill(0.0);
                let query = &query[range];
                keys_back(
                    pass.instructions,
                    place,
                    scores,
                    score,
                    keys,
                    query,
                    keys_gradient,
                    query_gradient,
                    score_gradient,
                );
            }
        }
    }

    /// After the last step back: gradient of the encoder's outputs. `context_gradients` lie along the decoder's timeline.
    pub fn encoded_gradient(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedAttention,
        joined: &Joined,
        context_gradients: &[f32],
        trace: &AttentionTrace,
        out: &mut Vec<f32>,
    ) {
        sized(out, trace.keys.len());
        for row in 0..pass.rows {
            let place = Place { row, rows: pass.rows, first: joined.attended_from(row, self.attend_to_padding) };
            let (probabilities, time) = (&trace.probabilities, &joined.decoder_time);
            spread(pass.instructions, place, time, joined.source_len, self.size, probabilities, context_gradients, out);
        }
        prepared.source.apply_back(pass, &trace.keys_gradient, out, true);
    }

    #[allow(clippy::too_many_arguments)]
    pub fn weight_gradients(
        &self,
        pass: &Pass<'_>,
        encoded: &[f32],
        segment: (usize, &Segment),
        trace: &AttentionTrace,
        scratch: &mut Scratch,
        gradient: &mut Gradient,
    ) {
        let ((index, segment), layout) = (segment, &pass.params.layout);
        let left = Rows::listed(encoded, &segment.encoder, self.size);
        let right = Rows::listed(&trace.keys_gradient, &segment.encoder, self.size);
        let out = dense(gradient, layout, self.source);
        multiply_transposed(pass.instructions, left, right, out, self.size, false, scratch);
        let score = Rows::new(&trace.score_gradient[index * self.size..(index + 1) * self.size], self.size);
        column_sums(pass.instructions, score, dense(gradient, layout, self.score));
    }
}

/// One row of the batch, and the first source position that it attends to.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    rows: usize,
    first: usize,
}

impl Place {
    /// This row at position `t` of time-major `data`.
    #[inline(always)]
    fn at<'a>(&self, data: &'a [f32], t: usize, width: usize) -> &'a [f32] {
        let start = (t * self.rows + self.row) * width;
        &data[start..start + width]
    }

    #[inline(always)]
    fn at_mut<'a>(&self, data: &'a mut [f32], t: usize, width: usize) -> &'a mut [f32] {
        let start = (t * self.rows + self.row) * width;
        &mut data[start..start + width]
    }
}

#[inline(always)]
fn add_scaled(out: &mut [f32], factor: f32, values: &[f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = factor.mul_add(*value, *out);
    }
}

#[inline(always)]
fn tanh_of_sum(key: &[f32], query: &[f32], out: &mut [f32]) {
    for ((out, key), query) in out.iter_mut().zip(key).zip(query) {
        *out = tanh(key + query);
    }
}

kernel! {
    fn attend(
        place: Place,
        score: &[f32],
        keys: &[f32],
        encoded: &[f32],
        query: &[f32],
        work: &mut [f32],
        probabilities: &mut [f32],
        context: &mut [f32],
    ) {
        let size = query.len();
        context.fill(0.0);
        let (hidden, seen) = probabilities.split_at_mut(place.first);
        hidden.fill(0.0);
        for (t, value) in seen.iter_mut().enumerate() {
            tanh_of_sum(place.at(keys, place.first + t, size), query, work);
            *value = dot(score, work);
        }
        let highest = largest(seen);
        for value in seen.iter_mut() {
            *value = exp(*value - highest);
        }
        let total = sum(seen);
        for (t, value) in seen.iter_mut().enumerate() {
            *value /= total;
            add_scaled(context, *value, place.at(encoded, place.first + t, size));
        }
    }
}

kernel! {
    /// From the gradient of the context to those of the scores.
    fn scores_back(place: Place, probabilities: &[f32], encoded: &[f32], context_gradient: &[f32], scores: &mut [f32]) {
        let (seen, scores) = (&probabilities[place.first..], &mut scores[place.first..]);
        for (t, score) in scores.iter_mut().enumerate() {
            *score = dot(context_gradient, place.at(encoded, place.first + t, context_gradient.len()));
        }
        let mean = dot(seen, scores);
        for (score, probability) in scores.iter_mut().zip(seen) {
            *score = probability * (*score - mean);
        }
    }
}

kernel! {
    /// From the gradients of the scores to those of key, query and v; the tanh is computed again rather than kept.
    fn keys_back(
        place: Place,
        scores: &[f32],
        score: &[f32],
        keys: &[f32],
        query: &[f32],
        keys_gradient: &mut [f32],
        query_gradient: &mut [f32],
        score_gradient: &mut [f32],
    ) {
        let size = query.len();
        for (t, factor) in scores.iter().enumerate().skip(place.first) {
            let values = place.at(keys, t, size).iter().zip(query).zip(score);
            let out = place.at_mut(keys_gradient, t, size).iter_mut().zip(&mut *query_gradient).zip(&mut *score_gradient);
            for (((key, query), v), ((key_gradient, query_gradient), score_gradient)) in values.zip(out) {
                let tanh = tanh(key + query);
                let gradient = factor * v * (-tanh).mul_add(tanh, 1.0);
                *key_gradient += gradient;
                *query_gradient += gradient;
                *score_gradient = factor.mul_add(tanh, *score_gradient);
            }
        }
    }
}

kernel! {
    /// Each encoder output of the row receives the context gradients of all steps, weighted by its probabilities.
    fn spread(
        place: Place,
        time: &Timeline,
        source_len: usize,
        size: usize,
        probabilities: &[f32],
        context_gradients: &[f32],
        out: &mut [f32],
    ) {
        for s in 0..source_len {
            let out = place.at_mut(out, s, size);
            out.fill(0.0);
            if s >= place.first {
                for t in (0..time.steps()).take_while(|t| place.row < time.alive(*t)) {
                    let row = time.start(t) + place.row;
                    add_scaled(out, probabilities[row * source_len + s], &context_gradients[row * size..][..size]);
                }
            }
        }
    }
}
