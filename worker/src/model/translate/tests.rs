//! The whole model against the candle reference, and what its bits may depend on.

use super::*;
use crate::model::instructions::Instructions;
use crate::model::reference::{Reference, in_full, micro_batch, random_pairs};

fn config(samples: usize, layers: usize, attend_to_padding: bool) -> TranslateConfig {
    TranslateConfig { from_vocab: 23, to_vocab: 29, size: 20, layers, samples, attend_to_padding }
}

fn batch(rows: usize, salt: u64, config: &TranslateConfig) -> MicroBatch {
    micro_batch(&random_pairs(rows, salt, config), 5, 9)
}

/// Larger weights than at the start, so that every part matters.
fn params(model: &Translate) -> Params {
    let mut params = model.initial(3);
    for (index, value) in params.data.iter_mut().enumerate() {
        *value += 0.1 * ((index * 37 % 101) as f32 / 50.0 - 1.0);
    }
    params
}

fn gradient_of(model: &Translate, params: &Params, batch: &MicroBatch) -> (Gradient, Sums) {
    let negatives = model.negatives(11, 4, batch.target_len);
    model.gradient(params, &model.prepare(params), batch, &negatives, &mut Workspace::default())
}

fn cases() -> [TranslateConfig; 4] {
    [config(7, 2, false), config(7, 1, true), config(0, 2, false), config(500, 3, true)]
}

#[test]
fn losses_and_gradients_are_those_of_the_reference() {
    for config in cases() {
        let model = Translate::new(config.clone());
        let (params, batch) = (params(&model), batch(6, 1, &config));
        let reference = Reference::new(&config, &params).unwrap();
        let negatives = config.is_sampled().then(|| model.negatives(11, 4, batch.target_len));
        let (gradient, sums) = gradient_of(&model, &params, &batch);

        let losses: Vec<f64> = reference.losses(&batch, negatives.as_ref()).unwrap().to_vec1().unwrap();
        assert!((sums.loss / losses.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{sums:?} {losses:?}");
        let tokens = batch.source_lengths.iter().sum::<u32>() + batch.weights.iter().sum::<f32>() as u32;
        assert_eq!((sums.samples, sums.tokens), (6, tokens.into()));

        let expected = reference.gradient(&batch, negatives.as_ref()).unwrap();
        for (name, values) in in_full(&params, &gradient) {
            let expected = &expected[&name];
            let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            assert!(largest > 1e-5, "{name} does not matter: the test is blind");
            for (index, (value, expected)) in values.iter().zip(expected).enumerate() {
                let error = (f64::from(*value) - expected).abs();
                assert!(error <= 2e-5 * largest + 1e-8, "{config:?} {name}[{index}]: {value} instead of {expected}");
            }
        }
    }
}

#[test]
fn gradients_of_the_reference_are_finite_differences() {
    for config in cases() {
        let model = Translate::new(config.clone());
        let (params, batch) = (params(&model), batch(4, 2, &config));
        let negatives = config.is_sampled().then(|| model.negatives(11, 4, batch.target_len));
        let reference = Reference::new(&config, &params).unwrap();
        let gradient = reference.gradient(&batch, negatives.as_ref()).unwrap();
        let loss =
            || -> f64 { reference.losses(&batch, negatives.as_ref()).unwrap().sum_all().unwrap().to_scalar().unwrap() };
        for (name, values) in &gradient {
            let largest = (0..values.len()).max_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs())).unwrap();
            for index in [largest, values.len() / 2] {
                let var = &reference.vars[name];
                let (shape, start) = (var.shape().clone(), var.flatten_all().unwrap().to_vec1::<f64>().unwrap());
                let at = |distance: f64| {
                    let mut moved = start.clone();
                    moved[index] += distance;
                    let moved = candle_core::Tensor::from_vec(moved, shape.clone(), &candle_core::Device::Cpu).unwrap();
                    var.set(&moved).unwrap();
                    loss()
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                at(0.0);
                let error = (slope - values[index]).abs();
                assert!(error <= 1e-6 * (1.0 + values[largest].abs()), "{name}[{index}]: {slope} {}", values[index]);
            }
        }
    }
}

#[test]
fn a_gradient_has_the_same_bits_on_every_instruction_set() {
    for config in cases() {
        let plain = Translate::with_instructions(config.clone(), *Instructions::supported().last().unwrap());
        let (params, batch) = (params(&plain), batch(9, 3, &config));
        let expected = gradient_of(&plain, &params, &batch);
        for instructions in Instructions::supported() {
            let model = Translate::with_instructions(config.clone(), instructions);
            let (gradient, sums) = gradient_of(&model, &params, &batch);
            assert!(same_bits(&gradient, &expected.0), "{config:?} {}", instructions.name());
            assert_eq!(sums.loss.to_bits(), expected.1.loss.to_bits());
        }
    }
}

fn same_bits(a: &Gradient, b: &Gradient) -> bool {
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    bits(&a.dense) == bits(&b.dense)
        && a.rows.len() == b.rows.len()
        && a.rows.iter().zip(&b.rows).all(|(a, b)| a.rows == b.rows && bits(&a.values) == bits(&b.values))
}

#[test]
fn micro_batches_side_by_side_give_the_bits_that_each_gives_alone() {
    for config in cases() {
        let model = Translate::new(config.clone());
        let params = params(&model);
        let prepared = model.prepare(&params);
        let negatives = model.negatives(11, 4, 9);
        let batches = [batch(3, 1, &config), batch(0, 2, &config), batch(8, 3, &config), batch(1, 4, &config)];
        let mut workspace = Workspace::default();
        let mut together: Vec<Gradient> = batches.iter().map(|_| Gradient::zeros(model.layout())).collect();
        // Twice, so that what an earlier step left in the buffers is seen not to matter.
        for order in [vec![2, 0, 1, 3], vec![0, 1, 2, 3]] {
            let chosen: Vec<&MicroBatch> = order.iter().map(|index| &batches[*index]).collect();
            let sums = model.gradients(&params, &prepared, &chosen, &negatives, &mut workspace, &mut together);
            for (place, batch) in chosen.iter().enumerate() {
                let alone = model.gradient(&params, &prepared, batch, &negatives, &mut Workspace::default());
                assert!(same_bits(&together[place], &alone.0), "{config:?} {place}");
                assert_eq!(sums[place], alone.1);
            }
        }
    }
}

#[test]
fn an_empty_micro_batch_has_a_zero_gradient_without_rows() {
    for config in cases() {
        let model = Translate::new(config.clone());
        let (gradient, sums) = gradient_of(&model, &params(&model), &batch(0, 1, &config));
        assert_eq!((gradient, sums), (Gradient::zeros(model.layout()), Sums::default()));
    }
}

#[test]
fn the_loss_of_a_sample_does_not_depend_on_the_other_rows() {
    for config in cases() {
        let model = Translate::new(config.clone());
        let params = params(&model);
        let prepared = model.prepare(&params);
        let negatives = model.negatives(11, 4, 9);
        let pairs = random_pairs(7, 5, &config);
        let mut workspace = Workspace::default();
        let mut losses = |pairs: &[(Vec<u32>, Vec<u32>)]| {
            let batch = micro_batch(pairs, 5, 9);
            let full = model.losses(&params, &prepared, &batch, &mut workspace);
            (full, model.training_losses(&params, &prepared, &batch, &negatives, &mut workspace))
        };
        let together = losses(&pairs);
        for (row, pair) in pairs.iter().enumerate() {
            let alone = losses(std::slice::from_ref(pair));
            assert_eq!((alone.0[0], alone.1[0]), (together.0[row], together.1[row]), "{config:?} {row}");
        }
        assert_eq!(together.0 == together.1, !config.is_sampled());
    }
}

#[test]
fn losses_over_a_vocabulary_of_several_chunks_are_those_of_the_reference() {
    let config = TranslateConfig { to_vocab: 2500, size: 8, ..config(64, 1, false) };
    let model = Translate::new(config.clone());
    let params = params(&model);
    let batch = batch(40, 6, &config);
    let losses = model.losses(&params, &model.prepare(&params), &batch, &mut Workspace::default());
    let expected: Vec<f64> = Reference::new(&config, &params).unwrap().losses(&batch, None).unwrap().to_vec1().unwrap();
    for (loss, expected) in losses.iter().zip(&expected) {
        assert!((loss / expected - 1.0).abs() < 1e-5, "{loss} {expected}");
    }
}

#[test]
fn greedy_answers_are_the_likeliest_words_and_the_same_in_any_company() {
    for config in cases() {
        let model = Translate::new(config.clone());
        let params = params(&model);
        let prepared = model.prepare(&params);
        let reference = Reference::new(&config, &params).unwrap();
        let sources: Vec<Vec<u32>> = random_pairs(16, 7, &config).into_iter().map(|pair| pair.0).collect();
        let views: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
        let mut workspace = Workspace::default();
        let together = model.greedy_batch(&params, &prepared, &views, (5, 9), &mut workspace);
        for (source, answer) in sources.iter().zip(&together) {
            assert_eq!(*answer, model.greedy(&params, &prepared, source, (5, 9), &mut workspace));
            let fed = if answer.len() == 9 { &answer[..7] } else { &answer[..answer.len().min(7)] };
            let best = reference.best_words(&micro_batch(&[(source.clone(), fed.to_vec())], 5, 9)).unwrap();
            for (t, word) in answer.iter().chain(&[2]).take(fed.len() + 1).enumerate() {
                assert_eq!(best[t][0], *word, "{config:?} {source:?} {answer:?} {t}");
            }
        }
    }
}

#[test]
fn of_a_source_longer_than_the_bucket_the_last_ids_remain() {
    let config = config(7, 2, false);
    let model = Translate::new(config);
    let params = params(&model);
    let prepared = model.prepare(&params);
    let mut workspace = Workspace::default();
    let long = model.greedy(&params, &prepared, &[3, 4, 5, 6, 7, 8, 9], (5, 9), &mut workspace);
    assert_eq!(long, model.greedy(&params, &prepared, &[5, 6, 7, 8, 9], (5, 9), &mut workspace));
    assert_ne!(long, model.greedy(&params, &prepared, &[3, 4, 5, 6, 7], (5, 9), &mut workspace));
}

#[test]
fn plain_gradient_descent_learns_a_small_batch() {
    let config =
        TranslateConfig { from_vocab: 10, to_vocab: 10, size: 32, layers: 2, samples: 8, attend_to_padding: false };
    let model = Translate::new(config.clone());
    let mut params = model.initial(1);
    let batch = batch(8, 9, &config);
    let mut prepared = model.prepare(&params);
    let mut workspace = Workspace::default();
    let before: f64 = model.losses(&params, &prepared, &batch, &mut workspace).iter().sum();
    for step in 0..150 {
        let negatives = model.negatives(1, step, batch.target_len);
        let (gradient, _) = model.gradient(&params, &prepared, &batch, &negatives, &mut workspace);
        let gradient = in_full(&params, &gradient);
        for (index, spec) in model.layout().specs().iter().enumerate() {
            for (value, slope) in params.get_mut(index).iter_mut().zip(&gradient[&spec.name]) {
                *value -= 0.3 / 8.0 * slope;
            }
        }
        model.refresh(&params, &mut prepared);
    }
    let after: f64 = model.losses(&params, &prepared, &batch, &mut workspace).iter().sum();
    assert!(after < 0.3 * before, "{before} {after}");
}
