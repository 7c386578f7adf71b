//! Operands of a product: views of rows, and the packed forms that the kernels read.

use super::PANEL;

/// Rows of equal width in a buffer: all, evenly spaced, or those of a list.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub data: &'a [f32],
    pub count: usize,
    pub width: usize,
    /// From one row of the buffer to the next.
    step: usize,
    /// Which rows of the buffer these are; all without a list.
    list: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
    /// Rows without gaps; as many as `data` holds.
    pub fn new(data: &'a [f32], width: usize) -> Self {
        let count = data.len().checked_div(width).unwrap_or(0);
        Self::strided(data, count, width, width)
    }

    pub fn strided(data: &'a [f32], count: usize, width: usize, step: usize) -> Self {
        Self { data, count, width, step, list: None }
    }

    /// Some rows of a buffer without gaps, such as those of one micro-batch among several.
    pub fn listed(data: &'a [f32], list: &'a [u32], width: usize) -> Self {
        Self { data, count: list.len(), width, step: width, list: Some(list) }
    }

    pub fn row(&self, row: usize) -> &'a [f32] {
        let start = self.list.map_or(row, |list| list[row] as usize) * self.step;
        &self.data[start..start + self.width]
    }

    /// The one distance between all neighbouring rows, if they are not listed.
    pub(super) fn even_step(&self) -> Option<usize> {
        self.list.is_none().then_some(self.step)
    }

    /// # Panics
    /// If the last row does not lie inside the buffer.
    pub(super) fn check(&self) {
        if let Some(last) = self.count.checked_sub(1) {
            self.row(last);
        }
    }
}

/// Sixteen values on one cache line, so that no vector load crosses two.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

const LINES: usize = PANEL / 16;

/// The right operand of a product: panels of [`PANEL`] columns, k from row to row, the last panel filled with zeros.
#[derive(Debug, Clone, Default)]
pub struct PackedMatrix {
    depth: usize,
    columns: usize,
    lines: Vec<Line>,
}

impl PackedMatrix {
    /// Size of the inner dimension k.
    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn panels(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// Takes `rows` as the matrix: row k of it is row k of the operand.
    pub fn pack(&mut self, rows: Rows<'_>) {
        self.resize(rows.count, rows.width);
        let panel = rows.count * LINES;
        for k in 0..rows.count {
            let (whole, rest) = rows.row(k).as_chunks::<PANEL>();
            let mut line = k * LINES;
            for chunk in whole {
                self.lines[line].0.copy_from_slice(&chunk[..16]);
                self.lines[line + 1].0.copy_from_slice(&chunk[16..]);
                line += panel;
            }
            if !rest.is_empty() {
                let mut padded = [0.0; PANEL];
                padded[..rest.len()].copy_from_slice(rest);
                self.lines[line].0.copy_from_slice(&padded[..16]);
                self.lines[line + 1].0.copy_from_slice(&padded[16..]);
            }
        }
    }

    /// Takes `rows` as the transposed matrix: row j of it is column j of the operand.
    pub fn pack_transposed(&mut self, rows: Rows<'_>) {
        self.resize(rows.width, rows.count);
        for (line, lines) in self.lines.chunks_exact_mut(rows.width.max(1) * LINES).enumerate() {
            let first = line * PANEL;
            for half in 0..LINES {
                let start = first + half * 16;
                let sources: [&[f32]; 16] =
                    std::array::from_fn(|j| if start + j < rows.count { rows.row(start + j) } else { &[] });
                if sources[15].is_empty() {
                    for k in 0..rows.width {
                        let value = |j: usize| sources[j].get(k).copied().unwrap_or(0.0);
                        lines[k * LINES + half].0 = std::array::from_fn(value);
                    }
                } else {
                    transpose(&sources, rows.width, &mut lines[half..]);
                }
            }
        }
    }

    fn resize(&mut self, depth: usize, columns: usize) {
        self.depth = depth;
        self.columns = columns;
        self.lines.resize(columns.div_ceil(PANEL) * depth * LINES, Line([0.0; 16]));
    }

    /// `depth * PANEL` values, on a cache line boundary.
    pub(super) fn panel(&self, index: usize) -> &[f32] {
        let lines = &self.lines[index * self.depth * LINES..(index + 1) * self.depth * LINES];
        // SAFETY: a `Line` is sixteen f32 without padding.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16) }
    }
}

/// Sixteen rows become sixteen lanes. In blocks of sixteen columns, so that each source line is read once.
fn transpose(sources: &[&[f32]; 16], width: usize, lines: &mut [Line]) {
    for first in (0..width).step_by(16) {
        let columns = 16.min(width - first);
        for (lane, source) in sources.iter().enumerate() {
            for (k, value) in source[first..first + columns].iter().enumerate() {
                lines[(first + k) * LINES].0[lane] = *value;
            }
        }
    }
}

/// The transposed left operand: tiles of `tile` columns of `rows`, k from row to row, the last tile filled with zeros.
pub(super) fn pack_tiles(rows: Rows<'_>, tile: usize, out: &mut Vec<f32>) {
    match tile {
        4 => pack_tiles_of::<4>(rows, out),
        6 => pack_tiles_of::<6>(rows, out),
        8 => pack_tiles_of::<8>(rows, out),
        other => unreachable!("no kernel has tiles of {other} rows"),
    }
}

fn pack_tiles_of<const TILE: usize>(rows: Rows<'_>, out: &mut Vec<f32>) {
    out.resize(rows.width.div_ceil(TILE) * rows.count * TILE, 0.0);
    let (out, _) = out.as_chunks_mut::<TILE>();
    for k in 0..rows.count {
        let (whole, rest) = rows.row(k).as_chunks::<TILE>();
        for (index, chunk) in whole.iter().enumerate() {
            out[index * rows.count + k] = *chunk;
        }
        if !rest.is_empty() {
            let last = &mut out[whole.len() * rows.count + k];
            last.fill(0.0);
            last[..rest.len()].copy_from_slice(rest);
        }
    }
}
