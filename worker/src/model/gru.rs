//! One GRU cell in the old form: the reset gate is applied before the candidate's product.
//!
//! r, u = sigmoid([x, h] G + g);  c = tanh([x, r h] C + d);  h' = u h + (1 - u) c.

use std::ops::Range;

use super::elementwise::{column_sums, fill_rows, sigmoid, tanh};
use super::gemm::{Rows, Scratch, multiply_transposed};
use super::instructions::kernel;
use super::joined::Timeline;
use super::linear::{Pass, Weight, dense, sized};
use crate::train::gradient::Gradient;
use crate::train::params::{Layout, ParamSpec, Params};

/// Where the parameters of a cell lie; input and state are `size` wide.
#[derive(Debug, Clone)]
pub struct Gru {
    size: usize,
    /// [2 size, 2 size]: rows for the input, then for the state; columns for the reset, then for the update gate.
    gates_weight: usize,
    gates_bias: usize,
    /// [2 size, size]: rows for the input, then for the reset state.
    candidate_weight: usize,
    candidate_bias: usize,
}

/// The weights of a cell, packed.
#[derive(Debug, Default)]
pub struct PreparedGru {
    gates_input: Weight,
    gates_state: Weight,
    candidate_input: Weight,
    candidate_state: Weight,
}

/// What the forward pass leaves for the backward pass, and the gradients that this leaves for the weights.
#[derive(Debug, Default)]
pub struct GruTrace {
    /// Rows of the first states.
    rows: usize,
    size: usize,
    time: Timeline,
    /// The first states, then those after each step.
    pub states: Vec<f32>,
    /// [timeline, 2 size]: r and u.
    gates: Vec<f32>,
    /// [timeline, size]: r h.
    reset_states: Vec<f32>,
    candidates: Vec<f32>,
    /// Gradients of the sums inside of sigmoid and tanh.
    gates_gradient: Vec<f32>,
    candidates_gradient: Vec<f32>,
}

impl GruTrace {
    /// Makes room and sets the first states to zero.
    pub fn start(&mut self, time: &Timeline, rows: usize, size: usize) {
        (self.rows, self.size) = (rows, size);
        self.time.clone_from(time);
        let all = time.total() * size;
        sized(&mut self.states, rows * size + all);
        self.states[..rows * size].fill(0.0);
        sized(&mut self.gates, all * 2);
        sized(&mut self.reset_states, all);
        sized(&mut self.candidates, all);
    }

    /// Makes room for the backward pass over as many steps.
    pub fn start_back(&mut self) {
        sized(&mut self.gates_gradient, self.gates.len());
        sized(&mut self.candidates_gradient, self.candidates.len());
    }

    /// The state before step `t` of the rows that are alive in it; after the last step, of all that were in that.
    pub fn state(&self, t: usize) -> &[f32] {
        &self.states[self.state_range(t)]
    }

    fn state_range(&self, t: usize) -> Range<usize> {
        let start = if t == 0 { 0 } else { self.rows + self.time.start(t - 1) };
        let rows = if t < self.time.steps() { self.time.alive(t) } else { self.rows + self.time.total() - start };
        start * self.size..(start + rows) * self.size
    }

    /// The states after these steps.
    pub fn outputs(&self, steps: Range<usize>) -> &[f32] {
        let range = self.time.range(steps, self.size);
        &self.after()[range]
    }

    /// The states after all steps, along the timeline.
    pub fn after(&self) -> &[f32] {
        &self.states[self.rows * self.size..]
    }
}

impl Gru {
    pub fn specs(prefix: &str, size: usize) -> Vec<ParamSpec> {
        vec![
            ParamSpec::dense(&format!("{prefix}.gates.weight"), &[2 * size, 2 * size]),
            ParamSpec::dense(&format!("{prefix}.gates.bias"), &[2 * size]),
            ParamSpec::dense(&format!("{prefix}.candidate.weight"), &[2 * size, size]),
            ParamSpec::dense(&format!("{prefix}.candidate.bias"), &[size]),
        ]
    }

    pub fn new(layout: &Layout, prefix: &str, size: usize) -> Self {
        let index = |name: &str| layout.index(&format!("{prefix}.{name}"));
        Self {
            size,
            gates_weight: index("gates.weight"),
            gates_bias: index("gates.bias"),
            candidate_weight: index("candidate.weight"),
            candidate_bias: index("candidate.bias"),
        }
    }

    pub fn prepare(&self, params: &Params, prepared: &mut PreparedGru) {
        let size = self.size;
        let (input, state) = params.get(self.gates_weight).split_at(size * 2 * size);
        prepared.gates_input.pack(Rows::new(input, 2 * size));
        prepared.gates_state.pack(Rows::new(state, 2 * size));
        let (input, state) = params.get(self.candidate_weight).split_at(size * size);
        prepared.candidate_input.pack(Rows::new(input, size));
        prepared.candidate_state.pack(Rows::new(state, size));
    }

    /// The input's share of all sums of these steps, in one product.
    pub fn project(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedGru,
        input: &[f32],
        steps: Range<usize>,
        trace: &mut GruTrace,
    ) {
        let (narrow, wide) = (trace.time.range(steps.clone(), self.size), trace.time.range(steps, 2 * self.size));
        let gates = &mut trace.gates[wide];
        fill_rows(pass.instructions, pass.params.get(self.gates_bias), gates, 2 * self.size);
        prepared.gates_input.apply(pass, input, gates);
        let candidates = &mut trace.candidates[narrow];
        fill_rows(pass.instructions, pass.params.get(self.candidate_bias), candidates, self.size);
        prepared.candidate_input.apply(pass, input, candidates);
    }

    /// From the state before step `t`, already projected, to the state after it.
    pub fn step(&self, pass: &Pass<'_>, prepared: &PreparedGru, t: usize, trace: &mut GruTrace) {
        let (range, wide) = (trace.time.range(t..t + 1, self.size), trace.time.range(t..t + 1, 2 * self.size));
        let state_range = trace.state_range(t);
        let next_start = trace.rows * self.size + range.start;
        let (before, after) = trace.states.split_at_mut(next_start);
        let (state, next) = (&before[state_range], &mut after[..range.len()]);
        let (gates, reset_state) = (&mut trace.gates[wide], &mut trace.reset_states[range.clone()]);
        prepared.gates_state.apply(pass, state, gates);
        apply_gates(pass.instructions, self.size, state, gates, reset_state);
        let candidate = &mut trace.candidates[range];
        prepared.candidate_state.apply(pass, reset_state, candidate);
        mix(pass.instructions, self.size, state, gates, candidate, next);
    }

    /// `carry`: in, the gradient of the state after step `t`; out, of the state before it.
    pub fn step_back(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedGru,
        t: usize,
        trace: &mut GruTrace,
        carry: &mut [f32],
        reset_gradient: &mut Vec<f32>,
    ) {
        let (range, wide) = (trace.time.range(t..t + 1, self.size), trace.time.range(t..t + 1, 2 * self.size));
        let state = &trace.states[trace.state_range(t)];
        let gates = &trace.gates[wide.clone()];
        let gates_gradient = &mut trace.gates_gradient[wide];
        let candidate_gradient = &mut trace.candidates_gradient[range.clone()];
        let candidate = &trace.candidates[range];
        mix_back(pass.instructions, self.size, state, gates, candidate, carry, gates_gradient, candidate_gradient);
        sized(reset_gradient, carry.len());
        prepared.candidate_state.apply_back(pass, candidate_gradient, reset_gradient, false);
        apply_gates_back(pass.instructions, self.size, state, gates, reset_gradient, carry, gates_gradient);
        prepared.gates_state.apply_back(pass, gates_gradient, carry, true);
    }

    /// Gradient of the input of these steps, after [`Gru::step_back`] over them.
    pub fn input_gradient(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedGru,
        steps: Range<usize>,
        trace: &GruTrace,
        out: &mut [f32],
        accumulate: bool,
    ) {
        let (narrow, wide) = (trace.time.range(steps.clone(), self.size), trace.time.range(steps, 2 * self.size));
        prepared.gates_input.apply_back(pass, &trace.gates_gradient[wide], out, accumulate);
        prepared.candidate_input.apply_back(pass, &trace.candidates_gradient[narrow], out, true);
    }

    /// Gradients of the parameters for one micro-batch, one product for each weight. `at` lists its rows along the
    /// timeline, `before` those of the states before the steps.
    #[allow(clippy::too_many_arguments)]
    pub fn weight_gradients(
        &self,
        pass: &Pass<'_>,
        trace: &GruTrace,
        input: &[f32],
        at: &[u32],
        before: &[u32],
        scratch: &mut Scratch,
        gradient: &mut Gradient,
    ) {
        let (size, layout, instructions) = (self.size, &pass.params.layout, pass.instructions);
        let (input, states) = (Rows::listed(input, at, size), Rows::listed(&trace.states, before, size));
        let reset_states = Rows::listed(&trace.reset_states, at, size);
        let wide = Rows::listed(&trace.gates_gradient, at, 2 * size);
        let narrow = Rows::listed(&trace.candidates_gradient, at, size);
        let (for_input, for_state) = dense(gradient, layout, self.gates_weight).split_at_mut(size * 2 * size);
        multiply_transposed(instructions, input, wide, for_input, 2 * size, false, scratch);
        multiply_transposed(instructions, states, wide, for_state, 2 * size, false, scratch);
        column_sums(instructions, wide, dense(gradient, layout, self.gates_bias));
        let (for_input, for_state) = dense(gradient, layout, self.candidate_weight).split_at_mut(size * size);
        multiply_transposed(instructions, input, narrow, for_input, size, false, scratch);
        multiply_transposed(instructions, reset_states, narrow, for_state, size, false, scratch);
        column_sums(instructions, narrow, dense(gradient, layout, self.candidate_bias));
    }
}

kernel! {
    /// Sums become r and u in place; `reset_state` = r h.
    fn apply_gates(size: usize, state: &[f32], gates: &mut [f32], reset_state: &mut [f32]) {
        let rows = state.chunks_exact(size).zip(gates.chunks_exact_mut(2 * size)).zip(reset_state.chunks_exact_mut(size));
        for ((state, gates), reset_state) in rows {
            for gate in gates.iter_mut() {
                *gate = sigmoid(*gate);
            }
            for ((out, h), r) in reset_state.iter_mut().zip(state).zip(&*gates) {
                *out = r * h;
            }
        }
    }
}

kernel! {
    /// Sums become c in place; `next` = u h + (1 - u) c, computed as c + u (h - c).
    fn mix(size: usize, state: &[f32], gates: &[f32], candidate: &mut [f32], next: &mut [f32]) {
        let rows = state.chunks_exact(size).zip(gates.chunks_exact(2 * size));
        let rows = rows.zip(candidate.chunks_exact_mut(size)).zip(next.chunks_exact_mut(size));
        for (((state, gates), candidate), next) in rows {
            for (((next, c), h), u) in next.iter_mut().zip(candidate).zip(state).zip(&gates[size..]) {
                *c = tanh(*c);
                *next = u.mul_add(h - *c, *c);
            }
        }
    }
}

kernel! {
    /// From the gradient of `next` to those of the sums in u and c; `carry` becomes u times itself.
    fn mix_back(
        size: usize,
        state: &[f32],
        gates: &[f32],
        candidate: &[f32],
        carry: &mut [f32],
        gates_gradient: &mut [f32],
        candidate_gradient: &mut [f32],
    ) {
        let rows = state.chunks_exact(size).zip(gates.chunks_exact(2 * size)).zip(candidate.chunks_exact(size));
        let rows = rows.zip(carry.chunks_exact_mut(size)).zip(gates_gradient.chunks_exact_mut(2 * size));
        let rows = rows.zip(candidate_gradient.chunks_exact_mut(size));
        for (((((state, gates), candidate), carry), gates_gradient), candidate_gradient) in rows {
            let values = state.iter().zip(&gates[size..]).zip(candidate).zip(carry);
            let out = gates_gradient[size..].iter_mut().zip(candidate_gradient);
            for ((((h, u), c), carry), (du, dc)) in values.zip(out) {
                let gradient = *carry;
                let rest = 1.0 - u;
                *dc = gradient * rest * (-c).mul_add(*c, 1.0);
                *du = gradient * (h - c) * (u * rest);
                *carry = gradient * u;
            }
        }
    }
}

kernel! {
    /// From the gradient of r h to that of the sum in r; adds its share to `carry`.
    fn apply_gates_back(
        size: usize,
        state: &[f32],
        gates: &[f32],
        reset_gradient: &[f32],
        carry: &mut [f32],
        gates_gradient: &mut [f32],
    ) {
        let rows = state.chunks_exact(size).zip(gates.chunks_exact(2 * size)).zip(reset_gradient.chunks_exact(size));
        let rows = rows.zip(carry.chunks_exact_mut(size)).zip(gates_gradient.chunks_exact_mut(2 * size));
        for ((((state, gates), reset_gradient), carry), gates_gradient) in rows {
            let values = state.iter().zip(gates).zip(reset_gradient).zip(carry).zip(gates_gradient);
            for ((((h, r), d), carry), dr) in values {
                *dr = d * h * (r * (1.0 - r));
                *carry = d.mul_add(*r, *carry);
            }
        }
    }
}
