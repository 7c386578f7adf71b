//! Sizes of the translate model, its parameters and their initial values.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::decoder::Decoder;
use crate::model::encoder::Encoder;
use crate::model::softmax::Projection;
use crate::random::{Keyed, Purpose};
use crate::train::params::{Layout, ParamSpec, Params};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslateConfig {
    pub from_vocab: usize,
    pub to_vocab: usize,
    /// Units of a layer, width of embeddings and of attention.
    pub size: usize,
    pub layers: usize,
    /// Candidates of the sampled softmax; used when above 0 and below `to_vocab`.
    pub samples: usize,
    /// The old behaviour: attention sees padding.
    pub attend_to_padding: bool,
}

/// Vectors whose initial value is not zero.
enum Start {
    Uniform(f32),
    Constant(f32),
}

impl TranslateConfig {
    /// Whether training uses sampled softmax.
    pub fn is_sampled(&self) -> bool {
        0 < self.samples && self.samples < self.to_vocab
    }

    pub fn layout(&self) -> Layout {
        let mut specs = Encoder::specs(self.from_vocab, self.size, self.layers);
        specs.extend(Decoder::specs(self.to_vocab, self.size, self.layers));
        specs.extend(Projection::specs(self.to_vocab, self.size, self.is_sampled()));
        Layout::new(specs)
    }

    pub fn parameter_count(&self) -> usize {
        self.layout().total()
    }

    pub(super) fn initial(&self, layout: &Arc<Layout>, seed: u64) -> Params {
        let mut params = Params::zeros(Arc::clone(layout));
        for (index, spec) in layout.specs().iter().enumerate() {
            match start(spec) {
                Start::Constant(value) => params.get_mut(index).fill(value),
                Start::Uniform(limit) => {
                    let numbers = Keyed::new(seed, Purpose::Initial, index as u64, 0);
                    for (block, values) in params.get_mut(index).chunks_mut(4).enumerate() {
                        for (value, bits) in values.iter_mut().zip(numbers.at(block as u64)) {
                            // 24 bits, in the middle of their interval: symmetric around zero.
                            let unit = ((bits >> 8) as f32 + 0.5) * (1.0 / (1u32 << 24) as f32);
                            *value = (2.0 * unit - 1.0) * limit;
                        }
                    }
                }
            }
        }
        params
    }
}

/// As TensorFlow 1.0 started them: the encoder's embedding in plus/minus sqrt 3, other matrices and v by Glorot's
/// rule, gate biases 1, other biases 0.
fn start(spec: &ParamSpec) -> Start {
    match (spec.name.as_str(), &spec.shape[..]) {
        ("encoder.embedding", _) => Start::Uniform(3.0f32.sqrt()),
        (name, _) if name.ends_with("gates.bias") => Start::Constant(1.0),
        (name, _) if name.ends_with("bias") => Start::Constant(0.0),
        (_, [inputs, outputs]) => Start::Uniform((6.0 / (inputs + outputs) as f32).sqrt()),
        (_, shape) => Start::Uniform((3.0 / shape.iter().product::<usize>() as f32).sqrt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::translate::Translate;

    fn config(vocabulary: usize, size: usize, layers: usize) -> TranslateConfig {
        TranslateConfig {
            from_vocab: vocabulary,
            to_vocab: vocabulary,
            size,
            layers,
            samples: 512,
            attend_to_padding: false,
        }
    }

    #[test]
    fn the_parameter_count_is_the_one_of_the_old_program() {
        for (vocabulary, size, layers, count) in [
            (40_000, 1024, 3, 169_079_872),
            (45_000, 1024, 3, 184_444_872),
            (5_000, 256, 2, 5_880_712),
            (10, 32, 2, 33_226),
        ] {
            assert_eq!(config(vocabulary, size, layers).parameter_count(), count);
        }
        let (s, l, from, to) = (12, 4, 31, 17);
        let uneven = TranslateConfig { from_vocab: from, to_vocab: to, ..config(0, s, l) };
        let attention_and_linear = s * s + s + (l + 4) * s * s + 3 * s;
        let expected = from * s + to * s + 2 * l * (6 * s * s + 3 * s) + attention_and_linear + to * s + to;
        assert_eq!(uneven.parameter_count(), expected);
    }

    #[test]
    fn initial_values_have_the_limits_of_the_old_program_and_follow_the_seed() {
        let model = Translate::new(config(600, 16, 2));
        let params = model.initial(5);
        assert_eq!(params, model.initial(5));
        assert_ne!(params, model.initial(6));
        let layout = model.layout();
        for (name, limit) in [
            ("encoder.embedding", 3.0f32.sqrt()),
            ("decoder.embedding", (6.0f32 / 616.0).sqrt()),
            ("projection.weight", (6.0f32 / 616.0).sqrt()),
            ("encoder.layer1.gates.weight", (6.0f32 / 64.0).sqrt()),
            ("attention.query.weight", (6.0f32 / 48.0).sqrt()),
        ] {
            let values = params.get(layout.index(name));
            let largest = values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            assert!(largest <= limit && largest > 0.95 * limit, "{name}: {largest} {limit}");
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            assert!(mean.abs() < 4.0 * limit / (3.0 * values.len() as f32).sqrt(), "{name}: {mean}");
        }
        assert!(params.get(layout.index("decoder.layer0.gates.bias")).iter().all(|value| *value == 1.0));
        assert!(params.get(layout.index("decoder.layer0.candidate.bias")).iter().all(|value| *value == 0.0));
        assert!(params.get(layout.index("projection.bias")).iter().all(|value| *value == 0.0));
    }
}
