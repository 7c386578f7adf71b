//! Register tiles of 8 x 32 with AVX-512.

use std::arch::x86_64::*;

use super::{PANEL, Tile};

pub const ROWS: usize = 8;

/// # Safety
/// The machine has AVX-512F, and all pointers of the tile are valid for its sizes.
#[target_feature(enable = "avx512f")]
pub unsafe fn tile(tile: &Tile) {
    // SAFETY: passed on from the caller.
    unsafe {
        match tile.rows {
            1 => rows::<1>(tile),
            2 => rows::<2>(tile),
            3 => rows::<3>(tile),
            4 => rows::<4>(tile),
            5 => rows::<5>(tile),
            6 => rows::<6>(tile),
            7 => rows::<7>(tile),
            _ => rows::<8>(tile),
        }
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn rows<const N: usize>(tile: &Tile) {
    let mask = ((1u64 << tile.columns) - 1) as u32;
    let (low, high) = (mask as __mmask16, (mask >> 16) as __mmask16);
    let mut sums = [[_mm512_setzero_ps(); 2]; N];
    // SAFETY: masked lanes are neither read nor written; everything else lies inside the tile, as the caller promises.
    unsafe {
        if tile.accumulate {
            for (row, sum) in sums.iter_mut().enumerate() {
                let c = tile.c.add(row * tile.c_step);
                *sum = [_mm512_maskz_loadu_ps(low, c), _mm512_maskz_loadu_ps(high, c.wrapping_add(16))];
            }
        }
        let (mut a, mut b) = (tile.a, tile.b);
        for _ in 0..tile.depth {
            let right = [_mm512_load_ps(b), _mm512_load_ps(b.add(16))];
            for (row, sum) in sums.iter_mut().enumerate() {
                let left = _mm512_set1_ps(*a.add(row * tile.a_row));
                sum[0] = _mm512_fmadd_ps(left, right[0], sum[0]);
                sum[1] = _mm512_fmadd_ps(left, right[1], sum[1]);
            }
            a = a.wrapping_add(tile.a_column);
            b = b.add(PANEL);
        }
        for (row, sum) in sums.iter().enumerate() {
            let c = tile.c.add(row * tile.c_step);
            _mm512_mask_storeu_ps(c, low, sum[0]);
            _mm512_mask_storeu_ps(c.wrapping_add(16), high, sum[1]);
        }
    }
}
