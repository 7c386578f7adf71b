//! The decoder: GRU layers with input feeding, attention over the encoder's outputs, and an output layer.
//!
//! cell input = [embedding, previous context] I + i;  query = [states of all layers] U + b;
//! output = [top state, context] O + o.  The first context is zero.

use std::ops::Range;

use super::attention::{Attention, AttentionTrace, PreparedAttention};
use super::elementwise::{add_assign, column_sums, fill_rows};
use super::gemm::{Rows, Scratch, multiply_transposed};
use super::gru::{Gru, GruTrace, PreparedGru};
use super::joined::{Joined, Segment, Timeline};
use super::linear::{Pass, Weight, dense, look_up, look_up_back, sized};
use crate::train::gradient::Gradient;
use crate::train::params::{Layout, ParamSpec, Params};

#[derive(Debug, Clone)]
pub struct Decoder {
    size: usize,
    embedding: usize,
    /// Position of the embedding among the row gradients.
    embedding_slot: usize,
    input_weight: usize,
    input_bias: usize,
    layers: Vec<Gru>,
    query_weight: usize,
    query_bias: usize,
    attention: Attention,
    output_weight: usize,
    output_bias: usize,
}

#[derive(Debug, Default)]
pub struct PreparedDecoder {
    input_embedding: Weight,
    input_context: Weight,
    layers: Vec<PreparedGru>,
    /// One block of U for each layer's state.
    query: Vec<Weight>,
    attention: PreparedAttention,
    output_state: Weight,
    output_context: Weight,
}

/// Buffers of [timeline, size] unless said otherwise.
#[derive(Debug, Default)]
pub struct DecoderTrace {
    embedded: Vec<f32>,
    cell_inputs: Vec<f32>,
    pub layers: Vec<GruTrace>,
    queries: Vec<f32>,
    attention: AttentionTrace,
    /// The first contexts, then those after each step.
    contexts: Vec<f32>,
    pub outputs: Vec<f32>,
    pub output_gradients: Vec<f32>,
    top_gradients: Vec<f32>,
    context_gradients: Vec<f32>,
    query_gradients: Vec<f32>,
    cell_input_gradients: Vec<f32>,
    embedded_gradients: Vec<f32>,
    /// Per layer, [rows, size]: after the backward pass the gradient of the layer's first state.
    pub carries: Vec<Vec<f32>>,
    reset_gradient: Vec<f32>,
    order: Vec<(u32, u32)>,
}

fn layer_name(layer: usize) -> String {
    format!("decoder.layer{layer}")
}

impl Decoder {
    pub fn specs(vocabulary: usize, size: usize, layers: usize) -> Vec<ParamSpec> {
        let mut specs = vec![
            ParamSpec::rows("decoder.embedding", &[vocabulary, size]),
            ParamSpec::dense("decoder.input.weight", &[2 * size, size]),
            ParamSpec::dense("decoder.input.bias", &[size]),
            ParamSpec::dense("attention.query.weight", &[layers * size, size]),
            ParamSpec::dense("attention.query.bias", &[size]),
            ParamSpec::dense("decoder.output.weight", &[2 * size, size]),
            ParamSpec::dense("decoder.output.bias", &[size]),
        ];
        specs.extend((0..layers).flat_map(|layer| Gru::specs(&layer_name(layer), size)));
        specs.extend(Attention::specs(size));
        specs
    }

    pub fn new(layout: &Layout, size: usize, layers: usize, attend_to_padding: bool) -> Self {
        let embedding = layout.index("decoder.embedding");
        Self {
            size,
            embedding,
            embedding_slot: layout.row_slot(embedding),
            input_weight: layout.index("decoder.input.weight"),
            input_bias: layout.index("decoder.input.bias"),
            layers: (0..layers).map(|layer| Gru::new(layout, &layer_name(layer), size)).collect(),
            query_weight: layout.index("attention.query.weight"),
            query_bias: layout.index("attention.query.bias"),
            attention: Attention::new(layout, size, attend_to_padding),
            output_weight: layout.index("decoder.output.weight"),
            output_bias: layout.index("decoder.output.bias"),
        }
    }

    pub fn prepare(&self, params: &Params, prepared: &mut PreparedDecoder) {
        let size = self.size;
        let (embedding, context) = params.get(self.input_weight).split_at(size * size);
        prepared.input_embedding.pack(Rows::new(embedding, size));
        prepared.input_context.pack(Rows::new(context, size));
        prepared.layers.resize_with(self.layers.len(), PreparedGru::default);
        for (layer, prepared) in self.layers.iter().zip(&mut prepared.layers) {
            layer.prepare(params, prepared);
        }
        prepared.query.resize_with(self.layers.len(), Weight::default);
        for (block, query) in params.get(self.query_weight).chunks_exact(size * size).zip(&mut prepared.query) {
            query.pack(Rows::new(block, size));
        }
        self.attention.prepare(params, &mut prepared.attention);
        let (state, context) = params.get(self.output_weight).split_at(size * size);
        prepared.output_state.pack(Rows::new(state, size));
        prepared.output_context.pack(Rows::new(context, size));
    }

    /// Before the first step: makes room, takes over the last states of the encoder's layers.
    pub fn start(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedDecoder,
        encoder_layers: &[GruTrace],
        joined: &Joined,
        encoded: &[f32],
        trace: &mut DecoderTrace,
    ) {
        let block = pass.rows * self.size;
        let all = joined.decoder_time.total() * self.size;
        trace.layers.resize_with(self.layers.len(), GruTrace::default);
        for (layer, from) in trace.layers.iter_mut().zip(encoder_layers) {
            layer.start(&joined.decoder_time, pass.rows, self.size);
            layer.states[..block].copy_from_slice(from.state(joined.source_len));
        }
        for buffer in [&mut trace.cell_inputs, &mut trace.queries, &mut trace.outputs] {
            sized(buffer, all);
        }
        sized(&mut trace.contexts, block + all);
        trace.contexts[..block].fill(0.0);
        self.attention.start(pass, &prepared.attention, encoded, joined, &mut trace.attention);
    }

    /// The embeddings' share of the cell inputs of these steps, in one product.
    pub fn embed(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedDecoder,
        time: &Timeline,
        ids: &[u32],
        steps: Range<usize>,
        trace: &mut DecoderTrace,
    ) {
        look_up(pass.params.get(self.embedding), ids, self.size, &mut trace.embedded);
        let out = &mut trace.cell_inputs[time.range(steps, self.size)];
        fill_rows(pass.instructions, pass.params.get(self.input_bias), out, self.size);
        prepared.input_embedding.apply(pass, &trace.embedded, out);
    }

    pub fn step(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedDecoder,
        joined: &Joined,
        encoded: &[f32],
        t: usize,
        trace: &mut DecoderTrace,
    ) {
        let here = joined.decoder_time.range(t..t + 1, self.size);
        let before = self.before(pass, joined, t);
        let (contexts, next_context) = trace.contexts.split_at_mut(pass.rows * self.size + here.start);
        let cell_input = &mut trace.cell_inputs[here.clone()];
        prepared.input_context.apply(pass, &contexts[before..before + here.len()], cell_input);
        let next_context = &mut next_context[..here.len()];
        let query = &mut trace.queries[here];
        fill_rows(pass.instructions, pass.params.get(self.query_bias), query, self.size);
        for (index, layer) in self.layers.iter().enumerate() {
            let (below, at) = trace.layers.split_at_mut(index);
            let input = below.last().map_or(&*cell_input, |layer| layer.outputs(t..t + 1));
            layer.project(pass, &prepared.layers[index], input, t..t + 1, &mut at[0]);
            layer.step(pass, &prepared.layers[index], t, &mut at[0]);
            prepared.query[index].apply(pass, at[0].outputs(t..t + 1), query);
        }
        self.attention.step(pass, joined, encoded, t, query, next_context, &mut trace.attention);
    }

    /// Where the rows alive in step `t` start in a buffer of first values and those after each step.
    fn before(&self, pass: &Pass<'_>, joined: &Joined, t: usize) -> usize {
        if t == 0 { 0 } else { (pass.rows + joined.decoder_time.start(t - 1)) * self.size }
    }

    /// The outputs of these steps, in one product.
    pub fn outputs(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedDecoder,
        time: &Timeline,
        steps: Range<usize>,
        trace: &mut DecoderTrace,
    ) {
        let (Some(top), range) = (trace.layers.last(), time.range(steps.clone(), self.size)) else { return };
        let contexts = &trace.contexts[pass.rows * self.size..][range.clone()];
        let out = &mut trace.outputs[range];
        fill_rows(pass.instructions, pass.params.get(self.output_bias), out, self.size);
        prepared.output_state.apply(pass, top.outputs(steps), out);
        prepared.output_context.apply(pass, contexts, out);
    }

    /// From `output_gradients` to the gradients of all sums, of the encoder's outputs (`encoded_gradient`) and of the
    /// first states (`carries`).
    pub fn backward(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedDecoder,
        joined: &Joined,
        encoded: &[f32],
        trace: &mut DecoderTrace,
        encoded_gradient: &mut Vec<f32>,
    ) {
        let (all, steps) = (joined.decoder_time.total() * self.size, joined.decoder_time.steps());
        for buffer in [
            &mut trace.top_gradients,
            &mut trace.context_gradients,
            &mut trace.query_gradients,
            &mut trace.cell_input_gradients,
            &mut trace.embedded_gradients,
        ] {
            sized(buffer, all);
        }
        prepared.output_state.apply_back(pass, &trace.output_gradients, &mut trace.top_gradients, false);
        prepared.output_context.apply_back(pass, &trace.output_gradients, &mut trace.context_gradients, false);
        trace.carries.resize_with(self.layers.len(), Vec::new);
        for carry in &mut trace.carries {
            sized(carry, pass.rows * self.size);
            carry.fill(0.0);
        }
        trace.layers.iter_mut().for_each(GruTrace::start_back);
        self.attention.start_back(joined, &mut trace.attention);
        for t in (0..steps).rev() {
            self.step_back(pass, prepared, joined, encoded, t, trace);
        }
        let gradients = &mut trace.embedded_gradients;
        prepared.input_embedding.apply_back(pass, &trace.cell_input_gradients, gradients, false);
        let (attention, contexts) = (&prepared.attention, &trace.context_gradients);
        self.attention.encoded_gradient(pass, attention, joined, contexts, &trace.attention, encoded_gradient);
    }

    fn step_back(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedDecoder,
        joined: &Joined,
        encoded: &[f32],
        t: usize,
        trace: &mut DecoderTrace,
    ) {
        let here = joined.decoder_time.range(t..t + 1, self.size);
        let alive = here.len();
        let query_gradient = &mut trace.query_gradients[here.clone()];
        let (query, context_gradient) = (&trace.queries[here.clone()], &trace.context_gradients[here.clone()]);
        let attention = &mut trace.attention;
        self.attention.step_back(pass, joined, encoded, t, query, context_gradient, query_gradient, attention);
        for (weight, carry) in prepared.query.iter().zip(&mut trace.carries) {
            weight.apply_back(pass, query_gradient, &mut carry[..alive], true);
        }
        if let Some(carry) = trace.carries.last_mut() {
            add_assign(pass.instructions, &mut carry[..alive], &trace.top_gradients[here.clone()]);
        }
        let cell_input_gradient = &mut trace.cell_input_gradients[here.clone()];
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (below, at) = trace.carries.split_at_mut(index);
            let (gru, prepared) = (&mut trace.layers[index], &prepared.layers[index]);
            layer.step_back(pass, prepared, t, gru, &mut at[0][..alive], &mut trace.reset_gradient);
            match below.last_mut() {
                Some(carry) => layer.input_gradient(pass, prepared, t..t + 1, gru, &mut carry[..alive], true),
                None => layer.input_gradient(pass, prepared, t..t + 1, gru, cell_input_gradient, false),
            }
        }
        if t > 0 {
            let start = joined.decoder_time.range(t - 1..t, self.size).start;
            let before = &mut trace.context_gradients[start..start + alive];
            prepared.input_context.apply_back(pass, cell_input_gradient, before, true);
        }
    }

    /// Gradients of the parameters of one micro-batch; `segment` with its position.
    #[allow(clippy::too_many_arguments)]
    pub fn weight_gradients(
        &self,
        pass: &Pass<'_>,
        joined: &Joined,
        encoded: &[f32],
        segment: (usize, &Segment),
        trace: &mut DecoderTrace,
        scratch: &mut Scratch,
        gradient: &mut Gradient,
    ) {
        self.attention.weight_gradients(pass, encoded, segment, &trace.attention, scratch, gradient);
        let (size, layout, instructions) = (self.size, &pass.params.layout, pass.instructions);
        let Segment { decoder: at, decoder_before: before, .. } = segment.1;
        let mut product = |left: Rows<'_>, right: &[f32], out: &mut [f32]| {
            multiply_transposed(instructions, left, Rows::listed(right, at, size), out, size, false, scratch);
        };

        let (for_embedding, for_context) = dense(gradient, layout, self.input_weight).split_at_mut(size * size);
        product(Rows::listed(&trace.embedded, at, size), &trace.cell_input_gradients, for_embedding);
        product(Rows::listed(&trace.contexts, before, size), &trace.cell_input_gradients, for_context);
        let blocks = dense(gradient, layout, self.query_weight).chunks_exact_mut(size * size);
        for (layer, out) in trace.layers.iter().zip(blocks) {
            product(Rows::listed(layer.after(), at, size), &trace.query_gradients, out);
        }
        let (for_state, for_context) = dense(gradient, layout, self.output_weight).split_at_mut(size * size);
        if let Some(top) = trace.layers.last() {
            product(Rows::listed(top.after(), at, size), &trace.output_gradients, for_state);
        }
        let contexts = &trace.contexts[pass.rows * size..];
        product(Rows::listed(contexts, at, size), &trace.output_gradients, for_context);
        for (gradients, bias) in [
            (&trace.cell_input_gradients, self.input_bias),
            (&trace.query_gradients, self.query_bias),
            (&trace.output_gradients, self.output_bias),
        ] {
            column_sums(instructions, Rows::listed(gradients, at, size), dense(gradient, layout, bias));
        }

        for (index, layer) in self.layers.iter().enumerate() {
            let (below, here) = trace.layers.split_at(index);
            let input = below.last().map_or(&trace.cell_inputs[..], GruTrace::after);
            layer.weight_gradients(pass, &here[0], input, at, before, scratch, gradient);
        }
        let ids = at.iter().map(|row| joined.decoder[*row as usize]);
        let rows = Rows::listed(&trace.embedded_gradients, at, size);
        look_up_back(instructions, ids, rows, &mut trace.order, &mut gradient.rows[self.embedding_slot]);
    }
}
