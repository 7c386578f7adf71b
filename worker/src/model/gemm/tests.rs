//! Products on all instruction sets against a chain of fused multiply-adds written out.

use super::*;

fn values(count: usize, salt: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + salt * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

fn chain(start: f32, pairs: impl Iterator<Item = (f32, f32)>) -> f32 {
    pairs.fold(start, |sum, (a, b)| a.mul_add(b, sum))
}

const SHAPES: [(usize, usize, usize); 9] =
    [(1, 1, 1), (8, 32, 16), (9, 33, 17), (7, 31, 40), (3, 65, 5), (16, 15, 1), (13, 97, 129), (5, 47, 0), (6, 16, 8)];

#[test]
fn every_element_is_one_chain_over_k_on_every_instruction_set() {
    for (m, n, k) in SHAPES {
        let (a, b, start) = (values(m * k, 1), values(k * n, 2), values(m * n, 3));
        let by_columns: Vec<f32> = (0..k * n).map(|i| b[(i % k) * n + i / k]).collect();
        let a_by_columns: Vec<f32> = (0..k * m).map(|i| a[(i % m) * k + i / m]).collect();
        for accumulate in [false, true] {
            let expected: Vec<u32> = (0..m * n)
                .map(|i| {
                    let start = if accumulate { start[i] } else { 0.0 };
                    chain(start, (0..k).map(|p| (a[i / n * k + p], b[p * n + i % n]))).to_bits()
                })
                .collect();
            for instructions in Instructions::supported() {
                let context = format!("{} {m} {n} {k}", instructions.name());
                let mut packed = PackedMatrix::default();
                packed.pack(Rows::strided(&b, k, n, n));
                let mut c = start.clone();
                multiply(instructions, Rows::strided(&a, m, k, k), &packed, &mut c, n, accumulate);
                assert!(c.iter().map(|x| x.to_bits()).eq(expected.iter().copied()), "plain {context}");

                packed.pack_transposed(Rows::strided(&by_columns, n, k, k));
                let mut c = start.clone();
                multiply(instructions, Rows::strided(&a, m, k, k), &packed, &mut c, n, accumulate);
                assert!(c.iter().map(|x| x.to_bits()).eq(expected.iter().copied()), "right transposed {context}");

                let mut c = start.clone();
                let (left, right) = (Rows::strided(&a_by_columns, k, m, m), Rows::strided(&b, k, n, n));
                multiply_transposed(instructions, left, right, &mut c, n, accumulate, &mut Scratch::default());
                assert!(c.iter().map(|x| x.to_bits()).eq(expected.iter().copied()), "left transposed {context}");
            }
        }
    }
}

#[test]
fn nothing_outside_of_the_result_is_written() {
    let (m, n, k, step) = (9, 33, 4, 40);
    let (a, b) = (values(m * k, 1), values(k * n, 2));
    let mut packed = PackedMatrix::default();
    packed.pack(Rows::new(&b, n));
    for instructions in Instructions::supported() {
        let mut c = vec![7.0; m * step];
        multiply(instructions, Rows::new(&a, k), &packed, &mut c, step, false);
        assert!(c.chunks(step).all(|row| row[n..].iter().all(|x| *x == 7.0)), "{}", instructions.name());
    }
}

#[test]
fn a_product_cut_along_k_or_over_listed_rows_keeps_its_bits() {
    let (steps, group, all, m, n) = (5, 3, 8, 10, 35);
    let (a, b) = (values(steps * all * m, 1), values(steps * all * n, 2));
    let first = 2;
    let pick = |data: &[f32], width: usize| -> Vec<f32> {
        (0..steps).flat_map(|t| data[(t * all + first) * width..(t * all + first + group) * width].to_vec()).collect()
    };
    let (a_alone, b_alone) = (pick(&a, m), pick(&b, n));
    let instructions = Instructions::best();
    let mut scratch = Scratch::default();
    let mut alone = vec![0.0; m * n];
    let (left, right) = (Rows::new(&a_alone, m), Rows::new(&b_alone, n));
    multiply_transposed(instructions, left, right, &mut alone, n, false, &mut scratch);

    let mut beside = vec![0.0; m * n];
    let list: Vec<u32> = (0..steps * group).map(|i| (i / group * all + first + i % group) as u32).collect();
    let (left, right) = (Rows::listed(&a, &list, m), Rows::listed(&b, &list, n));
    multiply_transposed(instructions, left, right, &mut beside, n, false, &mut scratch);
    assert_eq!(alone, beside);

    let mut cut = vec![0.0; m * n];
    for step in 0..steps {
        let left = Rows::new(&a_alone[step * group * m..(step + 1) * group * m], m);
        let right = Rows::new(&b_alone[step * group * n..(step + 1) * group * n], n);
        multiply_transposed(instructions, left, right, &mut cut, n, step > 0, &mut scratch);
    }
    assert_eq!(alone, cut);
}
