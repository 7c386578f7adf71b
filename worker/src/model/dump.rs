//! Writes the inputs of a run for a peer: a program in another framework that should compute the same.

use std::fs::{File, create_dir_all, write};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::negatives::Negatives;
use super::translate::TranslateConfig;
use crate::checkpoint::{Tensor, TensorData, encode};
use crate::data::batch::MicroBatch;
use crate::train::params::Params;

/// Writes `config.json`, `params.safetensors` and, one line for each step, `batches.jsonl` (its micro-batches) and
/// `negatives.jsonl`. `params` are those before the first of the steps.
pub fn write_dump(
    dir: &Path,
    config: &TranslateConfig,
    params: &Params,
    steps: impl Iterator<Item = (Vec<MicroBatch>, Negatives)>,
) -> io::Result<()> {
    create_dir_all(dir)?;
    write(dir.join("config.json"), serde_json::to_vec_pretty(config)?)?;
    let tensors: Vec<Tensor> = params
        .layout
        .specs()
        .iter()
        .enumerate()
        .map(|(index, spec)| Tensor {
            name: spec.name.clone(),
            shape: spec.shape.clone(),
            data: TensorData::F32(params.get(index).to_vec()),
        })
        .collect();
    write(dir.join("params.safetensors"), encode(&tensors))?;
    let mut batches = BufWriter::new(File::create(dir.join("batches.jsonl"))?);
    let mut negatives = BufWriter::new(File::create(dir.join("negatives.jsonl"))?);
    for (micro_batches, candidates) in steps {
        serde_json::to_writer(&mut batches, &micro_batches)?;
        batches.write_all(b"\n")?;
        serde_json::to_writer(&mut negatives, &candidates)?;
        negatives.write_all(b"\n")?;
    }
    batches.flush()?;
    negatives.flush()
}

#[cfg(test)]
mod tests {
    use std::fs::read_to_string;
    use std::path::PathBuf;

    use serde::Deserialize;

    use super::*;
    use crate::model::reference::{in_full, micro_batch, random_pairs};
    use crate::model::translate::{Translate, Workspace};
    use crate::random::{Keyed, Purpose};
    use crate::train::gradient::Gradient;
    use crate::train::optimizer::{clip, descend};

    const STEPS: u64 = 50;

    /// What the peer printed.
    #[derive(Deserialize)]
    struct Expected {
        gradients: std::collections::BTreeMap<String, Summary>,
        losses: Vec<f64>,
    }

    #[derive(Deserialize)]
    struct Summary {
        norm: f64,
        values: Vec<(usize, f64)>,
    }

    fn models() -> [(PathBuf, Translate); 2] {
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/translate");
        [("sampled", 8, false), ("full", 0, true)].map(|(name, samples, attend_to_padding)| {
            let config =
                TranslateConfig { from_vocab: 50, to_vocab: 50, size: 16, layers: 2, samples, attend_to_padding };
            (golden.join(name), Translate::new(config))
        })
    }

    /// Two micro-batches for each step, of two buckets in turn, one of them empty now and then.
    fn steps(model: &Translate) -> impl Iterator<Item = (Vec<MicroBatch>, Negatives)> {
        (0..STEPS).map(|step| {
            let (source_len, target_len) = if step % 2 == 0 { (5, 9) } else { (4, 7) };
            let rows = 4 + Keyed::new(1, Purpose::Split, step, 0).below(0, 4) as usize;
            let pairs = random_pairs(rows, step, model.config());
            let (left, right) = pairs.split_at(if step % 10 == 9 { rows } else { rows / 2 });
            let batches = [left, right].map(|pairs| micro_batch(pairs, source_len, target_len));
            (batches.to_vec(), model.negatives(1, step, target_len))
        })
    }

    #[test]
    fn golden_dumps_are_what_this_code_writes() {
        for (golden, model) in models() {
            if std::env::var_os("WRITE_GOLDEN").is_some() {
                write_dump(&golden, model.config(), &model.initial(1), steps(&model)).unwrap();
            }
            let folder = tempfile::tempdir().unwrap();
            write_dump(folder.path(), model.config(), &model.initial(1), steps(&model)).unwrap();
            for file in ["config.json", "params.safetensors", "batches.jsonl", "negatives.jsonl"] {
                let (ours, kept) = (std::fs::read(folder.path().join(file)), std::fs::read(golden.join(file)));
                assert!(ours.unwrap() == kept.unwrap(), "{file} of {} differs", golden.display());
            }
        }
    }

    #[test]
    fn gradients_and_losses_are_those_of_pytorch() {
        for (golden, model) in models() {
            let expected: Expected =
                serde_json::from_str(&read_to_string(golden.join("expected.json")).unwrap()).unwrap();
            let mut params = model.initial(1);
            let mut prepared = model.prepare(&params);
            let mut workspace = Workspace::default();
            for (step, (batches, negatives)) in steps(&model).enumerate() {
                let mut gradient = Gradient::zeros(model.layout());
                let (mut loss, mut samples) = (0.0, 0);
                for batch in &batches {
                    let (part, sums) = model.gradient(&params, &prepared, batch, &negatives, &mut workspace);
                    gradient.add(&part);
                    loss += sums.loss;
                    samples += sums.samples;
                }
                gradient.scale(1.0 / samples as f32);
                if step == 0 {
                    compare(&in_full(&params, &gradient), &expected);
                }
                clip(model.layout(), &mut gradient, 5.0);
                descend(&mut params, &gradient, 0.5);
                model.refresh(&params, &mut prepared);
                let (loss, expected) = (loss / samples as f64, expected.losses[step]);
                assert!((loss / expected - 1.0).abs() < 1e-3, "step {step}: loss {loss} instead of {expected}");
            }
            assert_eq!(expected.losses.len() as u64, STEPS);
        }
    }

    fn compare(gradients: &std::collections::BTreeMap<String, Vec<f32>>, expected: &Expected) {
        assert!(gradients.keys().eq(expected.gradients.keys()));
        for (name, values) in gradients {
            let Summary { norm, values: some } = &expected.gradients[name];
            let largest = some.iter().fold(0.0f64, |most, (_, value)| most.max(value.abs()));
            let ours = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            assert!((ours - norm).abs() <= 1e-4 * norm, "{name}: norm {ours} instead of {norm}");
            for (index, value) in some {
                let ours = f64::from(values[*index]);
                assert!((ours - value).abs() <= 1e-4 * largest, "{name}[{index}]: {ours} instead of {value}");
            }
        }
    }
}
