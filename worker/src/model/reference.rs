//! The translate model as a plain candle composition in f64: the reference of values and gradients.

use std::collections::BTreeMap;

use candle_core::{D, DType, Device, Result, Tensor, Var};

use super::negatives::Negatives;
use super::translate::TranslateConfig;
use crate::data::batch::MicroBatch;
use crate::random::{Keyed, Purpose};
use crate::train::gradient::Gradient;
use crate::train::params::{GradientKind, Params};

pub struct Reference {
    config: TranslateConfig,
    pub vars: BTreeMap<String, Var>,
}

fn ids(values: &[u32]) -> Result<Tensor> {
    Tensor::from_slice(values, values.len(), &Device::Cpu)
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    (x.neg()?.exp()? + 1.0)?.recip()
}

/// ln of the sum of exp over the last dimension.
fn log_sum_exp(x: &Tensor) -> Result<Tensor> {
    let highest = x.max_keepdim(D::Minus1)?.detach();
    x.broadcast_sub(&highest)?.exp()?.sum_keepdim(D::Minus1)?.log()? + highest
}

impl Reference {
    pub fn new(config: &TranslateConfig, params: &Params) -> Result<Self> {
        let mut vars = BTreeMap::new();
        for (index, spec) in params.layout.specs().iter().enumerate() {
            let values: Vec<f64> = params.get(index).iter().map(|x| f64::from(*x)).collect();
            vars.insert(
                spec.name.clone(),
                Var::from_tensor(&Tensor::from_vec(values, &spec.shape[..], &Device::Cpu)?)?,
            );
        }
        Ok(Self { config: config.clone(), vars })
    }

    fn get(&self, name: &str) -> &Tensor {
        self.vars[name].as_tensor()
    }

    /// `[inputs joined] weight + bias`.
    fn linear(&self, name: &str, inputs: &[&Tensor]) -> Result<Tensor> {
        let product = Tensor::cat(inputs, 1)?.matmul(self.get(&format!("{name}.weight")))?;
        product.broadcast_add(self.get(&format!("{name}.bias")))
    }

    fn gru(&self, name: &str, input: &Tensor, state: &Tensor) -> Result<Tensor> {
        let size = self.config.size;
        let gates = sigmoid(&self.linear(&format!("{name}.gates"), &[input, state])?)?;
        let (reset, update) = (gates.narrow(1, 0, size)?, gates.narrow(1, size, size)?);
        let candidate = self.linear(&format!("{name}.candidate"), &[input, &(reset * state)?])?.tanh()?;
        (&update * state)? + ((1.0 - &update)? * candidate)?
    }

    /// `encoded` is [rows, S, size]; `mask` is [rows, S] with 1 where attended.
    fn attend(&self, encoded: &Tensor, mask: &Tensor, query: &Tensor) -> Result<Tensor> {
        let (rows, steps, size) = encoded.dims3()?;
        let flat = encoded.reshape((rows * steps, size))?;
        let keys = flat.matmul(self.get("attention.source.weight"))?.reshape((rows, steps, size))?;
        let hidden = keys.broadcast_add(&query.reshape((rows, 1, size))?)?.tanh()?;
        let scores = hidden.broadcast_mul(self.get("attention.score"))?.sum(2)?;
        let highest = scores.max_keepdim(1)?.detach();
        let parts = (scores.broadcast_sub(&highest)?.exp()? * mask)?;
        // A row without any attended position has the context 0: its sum is replaced by 1.
        let total = (parts.sum_keepdim(1)? + (1.0 - mask.max_keepdim(1)?)?)?;
        let probabilities = parts.broadcast_div(&total)?.reshape((rows, steps, 1))?;
        encoded.broadcast_mul(&probabilities)?.sum(1)
    }

    /// Outputs of the decoder, one [rows, size] for each position.
    fn outputs(&self, batch: &MicroBatch) -> Result<Vec<Tensor>> {
        let (rows, size, layers) = (batch.rows, self.config.size, self.config.layers);
        let zero = Tensor::zeros((rows, size), DType::F64, &Device::Cpu)?;
        let mut states = vec![zero.clone(); layers];
        let mut encoded = Vec::new();
        for position in batch.encoder.chunks(rows) {
            let mut input = self.get("encoder.embedding").index_select(&ids(position)?, 0)?;
            for (layer, state) in states.iter_mut().enumerate() {
                *state = self.gru(&format!("encoder.layer{layer}"), &input, state)?;
                input = state.clone();
            }
            encoded.push(input);
        }
        let encoded = Tensor::stack(&encoded, 1)?;
        let mask: Vec<f64> = (0..rows * batch.source_len)
            .map(|index| {
                let hidden = batch.source_len - batch.source_lengths[index / batch.source_len] as usize;
                let seen = self.config.attend_to_padding || index % batch.source_len >= hidden;
                f64::from(u8::from(seen))
            })
            .collect();
        let mask = Tensor::from_vec(mask, (rows, batch.source_len), &Device::Cpu)?;
        let mut context = zero;
        let mut outputs = Vec::new();
        for position in batch.decoder.chunks(rows) {
            let embedded = self.get("decoder.embedding").index_select(&ids(position)?, 0)?;
            let mut input = self.linear("decoder.input", &[&embedded, &context])?;
            for (layer, state) in states.iter_mut().enumerate() {
                *state = self.gru(&format!("decoder.layer{layer}"), &input, state)?;
                input = state.clone();
            }
            let query = self.linear("attention.query", &states.iter().collect::<Vec<_>>())?;
            context = self.attend(&encoded, &mask, &query)?;
            outputs.push(self.linear("decoder.output", &[&input, &context])?);
        }
        Ok(outputs)
    }

    fn full_logits(&self, output: &Tensor) -> Result<Tensor> {
        output.matmul(&self.get("projection.weight").t()?)?.broadcast_add(self.get("projection.bias"))
    }

    /// The likeliest word at each position and row.
    pub fn best_words(&self, batch: &MicroBatch) -> Result<Vec<Vec<u32>>> {
        self.outputs(batch)?.iter().map(|output| self.full_logits(output)?.argmax(1)?.to_vec1()).collect()
    }

    fn sampled_entropy(&self, output: &Tensor, targets: &[u32], negatives: &Negatives, t: usize) -> Result<Tensor> {
        let (weight, bias) = (self.get("projection.weight"), self.get("projection.bias"));
        let candidates = &negatives.positions[t].ids;
        let expected = |ids: &[u32]| -> Vec<f64> {
            ids.iter().map(|id| f64::from(negatives.log_expected_count(t, *id))).collect()
        };
        let offsets = Tensor::from_vec(expected(candidates), candidates.len(), &Device::Cpu)?;
        let offsets = (bias.index_select(&ids(candidates)?, 0)? - offsets)?;
        let hits: Vec<f64> = targets
            .iter()
            .flat_map(|target| candidates.iter().map(move |id| if id == target { -1e9 } else { 0.0 }))
            .collect();
        let hits = Tensor::from_vec(hits, (targets.len(), candidates.len()), &Device::Cpu)?;
        let logits = output.matmul(&weight.index_select(&ids(candidates)?, 0)?.t()?)?.broadcast_add(&offsets)?;
        let own = (output * weight.index_select(&ids(targets)?, 0)?)?.sum(1)?;
        let own_offsets = Tensor::from_vec(expected(targets), targets.len(), &Device::Cpu)?;
        let own = ((own + bias.index_select(&ids(targets)?, 0)?)? - own_offsets)?.reshape((targets.len(), 1))?;
        log_sum_exp(&Tensor::cat(&[&(logits + hits)?, &own], 1)?)? - own
    }

    /// Loss of each sample, [rows]; under the full softmax without negatives.
    pub fn losses(&self, batch: &MicroBatch, negatives: Option<&Negatives>) -> Result<Tensor> {
        let rows = batch.rows;
        let mut total = Tensor::zeros((rows, 1), DType::F64, &Device::Cpu)?;
        for (t, output) in self.outputs(batch)?.iter().enumerate() {
            let targets = &batch.targets[t * rows..(t + 1) * rows];
            let entropy = match negatives {
                Some(negatives) => self.sampled_entropy(output, targets, negatives, t),
                None => {
                    let logits = self.full_logits(output)?;
                    log_sum_exp(&logits)? - logits.gather(&ids(targets)?.reshape((rows, 1))?, 1)?
                }
            }?;
            let weights: Vec<f64> = batch.weights[t * rows..(t + 1) * rows].iter().map(|x| f64::from(*x)).collect();
            total = (total + (entropy * Tensor::from_vec(weights, (rows, 1), &Device::Cpu)?)?)?;
        }
        let scales: Vec<f64> = (0..rows)
            .map(|row| 1.0 / (batch.weights.iter().skip(row).step_by(rows).map(|x| f64::from(*x)).sum::<f64>() + 1e-12))
            .collect();
        (total * Tensor::from_vec(scales, (rows, 1), &Device::Cpu)?)?.reshape(rows)
    }

    /// Gradient of the summed losses, each parameter in full.
    pub fn gradient(&self, batch: &MicroBatch, negatives: Option<&Negatives>) -> Result<BTreeMap<String, Vec<f64>>> {
        let gradients = self.losses(batch, negatives)?.sum_all()?.backward()?;
        let mut out = BTreeMap::new();
        for (name, var) in &self.vars {
            let values = match gradients.get(var) {
                Some(gradient) => gradient.flatten_all()?.to_vec1()?,
                None => vec![0.0; var.elem_count()],
            };
            out.insert(name.clone(), values);
        }
        Ok(out)
    }
}

/// A gradient with every parameter in full, by name.
pub fn in_full(params: &Params, gradient: &Gradient) -> BTreeMap<String, Vec<f32>> {
    let layout = &params.layout;
    let full = |index: usize| match layout.specs()[index].gradient {
        GradientKind::Dense => gradient.dense[layout.dense_range(index)].to_vec(),
        GradientKind::Rows => {
            let table = &gradient.rows[layout.row_slot(index)];
            let mut values = vec![0.0; layout.specs()[index].elements()];
            for (position, row) in table.rows.iter().enumerate() {
                values[*row as usize * table.width..][..table.width].copy_from_slice(table.row(position));
            }
            values
        }
    };
    layout.specs().iter().enumerate().map(|(index, spec)| (spec.name.clone(), full(index))).collect()
}

/// A micro-batch from (source, target) pairs, laid out as `systems.md` 1.7 says.
pub fn micro_batch(pairs: &[(Vec<u32>, Vec<u32>)], source_len: usize, target_len: usize) -> MicroBatch {
    let rows = pairs.len();
    let mut batch = MicroBatch {
        rows,
        source_len,
        target_len,
        encoder: vec![0; source_len * rows],
        decoder: vec![0; target_len * rows],
        targets: vec![0; target_len * rows],
        weights: vec![0.0; target_len * rows],
        source_lengths: pairs.iter().map(|pair| pair.0.len() as u32).collect(),
        sample_ids: (0..rows as u64).collect(),
        ..MicroBatch::default()
    };
    for (row, (source, target)) in pairs.iter().enumerate() {
        for (t, id) in source.iter().enumerate() {
            batch.encoder[(source_len - 1 - t) * rows + row] = *id;
        }
        batch.decoder[row] = 1;
        for (t, id) in target.iter().chain(&[2]).enumerate() {
            batch.decoder[(t + 1) * rows + row] = *id;
            batch.targets[t * rows + row] = *id;
            batch.weights[t * rows + row] = 1.0;
        }
    }
    batch
}

/// Pairs of uneven lengths; the second source is empty, the third target too.
pub fn random_pairs(rows: usize, salt: u64, config: &TranslateConfig) -> Vec<(Vec<u32>, Vec<u32>)> {
    let numbers = Keyed::new(salt, Purpose::Split, 0, 0);
    let words = |start: u64, length: u64, vocabulary: usize| -> Vec<u32> {
        (0..length).map(|i| 3 + numbers.below(start + i, vocabulary as u64 - 3) as u32).collect()
    };
    (0..rows as u64)
        .map(|row| {
            let source = if row == 1 { 0 } else { 1 + (row + salt) % 4 };
            let target = if row == 2 { 0 } else { 1 + (row * 3 + salt) % 5 };
            (words(row * 100, source, config.from_vocab), words(row * 100 + 50, target, config.to_vocab))
        })
        .collect()
}
