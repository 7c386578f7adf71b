//! The translate model: losses and gradients of a sequence-to-sequence GRU with attention.

mod config;
mod greedy;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

pub use config::TranslateConfig;

use super::decoder::{Decoder, DecoderTrace, PreparedDecoder};
use super::encoder::{Encoder, EncoderTrace, PreparedEncoder};
use super::gemm::{PackedMatrix, Scratch};
use super::instructions::Instructions;
use super::joined::Joined;
use super::linear::Pass;
use super::negatives::Negatives;
use super::sampled::SampledTrace;
use super::softmax::{Projection, SoftmaxTrace};
use crate::data::batch::MicroBatch;
use crate::train::gradient::{Gradient, Sums};
use crate::train::params::{Layout, Params};

/// The model without its weights: where they lie and what is computed with them.
#[derive(Debug, Clone)]
pub struct Translate {
    config: TranslateConfig,
    layout: Arc<Layout>,
    instructions: Instructions,
    encoder: Encoder,
    decoder: Decoder,
    projection: Projection,
}

/// The weights of one step in the form that the products read; shared by all threads.
#[derive(Debug, Default)]
pub struct Prepared {
    encoder: PreparedEncoder,
    decoder: PreparedDecoder,
    /// For logits of the whole vocabulary; packed at its first use, which sampled training never makes.
    projection: OnceLock<PackedMatrix>,
}

/// Buffers of one thread, kept between steps so that steps do not allocate.
#[derive(Debug, Default)]
pub struct Workspace {
    joined: Joined,
    encoder: EncoderTrace,
    decoder: DecoderTrace,
    sampled: SampledTrace,
    softmax: SoftmaxTrace,
    scratch: Scratch,
    losses: Vec<f64>,
}

impl Translate {
    pub fn new(config: TranslateConfig) -> Self {
        Self::with_instructions(config, Instructions::best())
    }

    /// For tests: the results do not depend on the instructions.
    pub fn with_instructions(config: TranslateConfig, instructions: Instructions) -> Self {
        let layout = Arc::new(config.layout());
        let (size, layers) = (config.size, config.layers);
        Self {
            encoder: Encoder::new(&layout, size, layers),
            decoder: Decoder::new(&layout, size, layers, config.attend_to_padding),
            projection: Projection::new(&layout, config.to_vocab, size),
            config,
            layout,
            instructions,
        }
    }

    pub fn config(&self) -> &TranslateConfig {
        &self.config
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Parameters at step 0: a function of the seed.
    pub fn initial(&self, seed: u64) -> Params {
        self.config.initial(&self.layout, seed)
    }

    /// The candidates of a step for a bucket with `positions` decoder positions; empty under full softmax.
    pub fn negatives(&self, seed: u64, step: u64, positions: usize) -> Negatives {
        Negatives::draw(seed, step, positions, self.config.samples, self.config.to_vocab)
    }

    /// Packs the weights for one step.
    pub fn prepare(&self, params: &Params) -> Prepared {
        let mut prepared = Prepared::default();
        self.refresh(params, &mut prepared);
        prepared
    }

    /// Packs changed weights again, in the memory of the earlier ones.
    pub fn refresh(&self, params: &Params, prepared: &mut Prepared) {
        self.encoder.prepare(params, &mut prepared.encoder);
        self.decoder.prepare(params, &mut prepared.decoder);
        prepared.projection.take();
    }

    fn packed_projection<'a>(&self, params: &Params, prepared: &'a Prepared) -> &'a PackedMatrix {
        prepared.projection.get_or_init(|| {
            let mut packed = PackedMatrix::default();
            self.projection.pack(params, &mut packed);
            packed
        })
    }

    /// Gradient of one micro-batch: the sum over its samples.
    pub fn gradient(
        &self,
        params: &Params,
        prepared: &Prepared,
        batch: &MicroBatch,
        negatives: &Negatives,
        workspace: &mut Workspace,
    ) -> (Gradient, Sums) {
        let mut gradients = [Gradient::zeros(&self.layout)];
        let sums = self.gradients(params, prepared, &[batch], negatives, workspace, &mut gradients);
        let [gradient] = gradients;
        (gradient, sums[0])
    }

    /// Gradients of several micro-batches of one bucket, computed side by side: the same bits as one by one, sooner.
    /// `out` is overwritten.
    ///
    /// # Panics
    /// If there are not as many results as micro-batches.
    pub fn gradients(
        &self,
        params: &Params,
        prepared: &Prepared,
        batches: &[&MicroBatch],
        negatives: &Negatives,
        workspace: &mut Workspace,
        out: &mut [Gradient],
    ) -> Vec<Sums> {
        assert_eq!(batches.len(), out.len(), "one gradient for each micro-batch");
        workspace.joined.fill(batches);
        let pass = self.forward(params, prepared, workspace);
        let Workspace { joined, encoder, decoder, sampled, softmax, scratch, losses } = workspace;
        let (outputs, output_gradients) = (&decoder.outputs, &mut decoder.output_gradients);
        losses.clear();
        losses.resize(pass.rows, 0.0);
        if self.config.is_sampled() {
            self.projection.sampled(&pass, joined, negatives, outputs, losses, output_gradients, sampled);
            for (segment, gradient) in joined.segments.iter().zip(&mut *out) {
                self.projection.sampled_gradients(&pass, joined, segment, negatives, outputs, sampled, gradient);
            }
        } else {
            let packed = self.packed_projection(params, prepared);
            self.projection.full(&pass, packed, joined, outputs, losses, softmax);
            self.projection.full_back(&pass, packed, joined, outputs, output_gradients, softmax, scratch, out);
        }

        // The gradient of the encoder's outputs is built in the buffer that the encoder works on.
        let mut encoded_gradient = std::mem::take(&mut encoder.output_gradient);
        let encoded = encoder.outputs(joined.source_len);
        self.decoder.backward(&pass, &prepared.decoder, joined, encoded, decoder, &mut encoded_gradient);
        for (segment, gradient) in joined.segments.iter().enumerate().zip(&mut *out) {
            self.decoder.weight_gradients(&pass, joined, encoded, segment, decoder, scratch, gradient);
        }
        encoder.output_gradient = encoded_gradient;
        self.encoder.backward(&pass, &prepared.encoder, joined, encoder, &mut decoder.carries, scratch, out);

        let losses = in_order(joined, losses);
        let mut start = 0;
        let mut sums_of = |batch: &MicroBatch| {
            start += batch.rows;
            sums(batch, &losses[start - batch.rows..start])
        };
        batches.iter().map(|batch| sums_of(batch)).collect()
    }

    /// Forward pass over the joined rows up to the decoder's outputs.
    fn forward<'a>(&self, params: &'a Params, prepared: &Prepared, workspace: &mut Workspace) -> Pass<'a> {
        let Workspace { joined, encoder, decoder, .. } = workspace;
        let pass = Pass { instructions: self.instructions, params, rows: joined.rows };
        let (time, steps) = (&joined.decoder_time, joined.decoder_time.steps());
        self.encoder.forward(&pass, &prepared.encoder, joined, encoder);
        let encoded = encoder.outputs(joined.source_len);
        self.decoder.start(&pass, &prepared.decoder, &encoder.layers, joined, encoded, decoder);
        self.decoder.embed(&pass, &prepared.decoder, time, &joined.decoder, 0..steps, decoder);
        for t in 0..steps {
            self.decoder.step(&pass, &prepared.decoder, joined, encoded, t, decoder);
        }
        self.decoder.outputs(&pass, &prepared.decoder, time, 0..steps, decoder);
        pass
    }

    /// Loss of each sample under the full softmax.
    pub fn losses(
        &self,
        params: &Params,
        prepared: &Prepared,
        batch: &MicroBatch,
        workspace: &mut Workspace,
    ) -> Vec<f64> {
        workspace.joined.fill(&[batch]);
        let pass = self.forward(params, prepared, workspace);
        let mut losses = vec![0.0; pass.rows];
        let packed = self.packed_projection(params, prepared);
        let Workspace { joined, decoder, softmax, .. } = workspace;
        self.projection.full(&pass, packed, joined, &decoder.outputs, &mut losses, softmax);
        in_order(joined, &losses)
    }

    /// Loss of each sample as training sees it: under the sampled softmax where the model uses one.
    pub fn training_losses(
        &self,
        params: &Params,
        prepared: &Prepared,
        batch: &MicroBatch,
        negatives: &Negatives,
        workspace: &mut Workspace,
    ) -> Vec<f64> {
        if !self.config.is_sampled() {
            return self.losses(params, prepared, batch, workspace);
        }
        workspace.joined.fill(&[batch]);
        let pass = self.forward(params, prepared, workspace);
        let mut losses = vec![0.0; pass.rows];
        let Workspace { joined, decoder, sampled, .. } = workspace;
        let (outputs, gradients) = (&decoder.outputs, &mut decoder.output_gradients);
        self.projection.sampled(&pass, joined, negatives, outputs, &mut losses, gradients, sampled);
        in_order(joined, &losses)
    }
}

/// Losses of the joined rows in the order of the micro-batches.
fn in_order(joined: &Joined, losses: &[f64]) -> Vec<f64> {
    let mut ordered = vec![0.0; losses.len()];
    for (place, loss) in joined.order.iter().zip(losses) {
        ordered[*place] = *loss;
    }
    ordered
}

fn sums(batch: &MicroBatch, losses: &[f64]) -> Sums {
    let targets = batch.weights.iter().filter(|weight| **weight != 0.0).count() as u64;
    let sources: u64 = batch.source_lengths.iter().map(|length| u64::from(*length)).sum();
    Sums { loss: losses.iter().sum(), samples: batch.rows as u64, tokens: sources + targets }
}
