//! The encoder: an embedding and a stack of GRU layers over the reversed source.

use super::elementwise::add_assign;
use super::gemm::{Rows, Scratch};
use super::gru::{Gru, GruTrace, PreparedGru};
use super::joined::Joined;
use super::linear::{Pass, look_up, look_up_back, sized};
use crate::train::gradient::Gradient;
use crate::train::params::{Layout, ParamSpec, Params};

#[derive(Debug, Clone)]
pub struct Encoder {
    size: usize,
    embedding: usize,
    /// Position of the embedding among the row gradients.
    embedding_slot: usize,
    layers: Vec<Gru>,
}

#[derive(Debug, Default)]
pub struct PreparedEncoder {
    layers: Vec<PreparedGru>,
}

#[derive(Debug, Default)]
pub struct EncoderTrace {
    /// [S, rows, size].
    embedded: Vec<f32>,
    pub layers: Vec<GruTrace>,
    /// Gradient of the outputs of the layer at hand, [S, rows, size].
    pub output_gradient: Vec<f32>,
    reset_gradient: Vec<f32>,
    order: Vec<(u32, u32)>,
}

impl EncoderTrace {
    /// Outputs of the top layer, [S, rows, size].
    pub fn outputs(&self, steps: usize) -> &[f32] {
        self.layers.last().map_or(&[], |layer| layer.outputs(0..steps))
    }
}

fn layer_name(layer: usize) -> String {
    format!("encoder.layer{layer}")
}

impl Encoder {
    pub fn specs(vocabulary: usize, size: usize, layers: usize) -> Vec<ParamSpec> {
        let mut specs = vec![ParamSpec::rows("encoder.embedding", &[vocabulary, size])];
        specs.extend((0..layers).flat_map(|layer| Gru::specs(&layer_name(layer), size)));
        specs
    }

    pub fn new(layout: &Layout, size: usize, layers: usize) -> Self {
        let embedding = layout.index("encoder.embedding");
        Self {
            size,
            embedding,
            embedding_slot: layout.row_slot(embedding),
            layers: (0..layers).map(|layer| Gru::new(layout, &layer_name(layer), size)).collect(),
        }
    }

    pub fn prepare(&self, params: &Params, prepared: &mut PreparedEncoder) {
        prepared.layers.resize_with(self.layers.len(), PreparedGru::default);
        for (layer, prepared) in self.layers.iter().zip(&mut prepared.layers) {
            layer.prepare(params, prepared);
        }
    }

    pub fn forward(&self, pass: &Pass<'_>, prepared: &PreparedEncoder, joined: &Joined, trace: &mut EncoderTrace) {
        let steps = joined.source_len;
        look_up(pass.params.get(self.embedding), &joined.encoder, self.size, &mut trace.embedded);
        trace.layers.resize_with(self.layers.len(), GruTrace::default);
        for (index, layer) in self.layers.iter().enumerate() {
            let (below, here) = trace.layers.split_at_mut(index);
            let input = below.last().map_or(&trace.embedded[..], |layer| layer.outputs(0..steps));
            here[0].start(&joined.encoder_time, pass.rows, self.size);
            layer.project(pass, &prepared.layers[index], input, 0..steps, &mut here[0]);
            for t in 0..steps {
                layer.step(pass, &prepared.layers[index], t, &mut here[0]);
            }
        }
    }

    /// From the gradients of the outputs (in the trace) and of each layer's last state to those of the parameters.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        pass: &Pass<'_>,
        prepared: &PreparedEncoder,
        joined: &Joined,
        trace: &mut EncoderTrace,
        last_states: &mut [Vec<f32>],
        scratch: &mut Scratch,
        gradients: &mut [Gradient],
    ) {
        let steps = joined.source_len;
        let block = pass.rows * self.size;
        sized(&mut trace.output_gradient, steps * block);
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (below, here) = trace.layers.split_at_mut(index);
            let (here, prepared) = (&mut here[0], &prepared.layers[index]);
            let input = below.last().map_or(&trace.embedded[..], |layer| layer.outputs(0..steps));
            let carry = &mut last_states[index];
            here.start_back();
            for t in (0..steps).rev() {
                add_assign(pass.instructions, carry, &trace.output_gradient[t * block..(t + 1) * block]);
                layer.step_back(pass, prepared, t, here, carry, &mut trace.reset_gradient);
            }
            layer.input_gradient(pass, prepared, 0..steps, here, &mut trace.output_gradient, false);
            for (segment, gradient) in joined.segments.iter().zip(&mut *gradients) {
                // All rows are alive at every step: the state before a step lies where its own rows do.
                layer.weight_gradients(pass, here, input, &segment.encoder, &segment.encoder, scratch, gradient);
            }
        }
        for (segment, gradient) in joined.segments.iter().zip(gradients) {
            let ids = segment.encoder.iter().map(|row| joined.encoder[*row as usize]);
            let rows = Rows::listed(&trace.output_gradient, &segment.encoder, self.size);
            let out = &mut gradient.rows[self.embedding_slot];
            look_up_back(pass.instructions, ids, rows, &mut trace.order, out);
        }
    }
}
