//! Bytes on the wire between ranks: a header with kind, operation number and length, then little-endian data.

use std::io::{self, Read, Write};

use crate::train::gradient::{Gradient, RowGradient};

/// A frame's header: operation number and payload length. Both sides count operations, so that ranks which no longer
/// run the same program are found at once and not by wrong sums.
pub struct Header {
    pub operation: u64,
    pub bytes: u64,
}

pub const HEADER_BYTES: usize = 16;

/// More than the largest model this engine can hold in memory on one host.
pub const FRAME_LIMIT: u64 = 64 << 30;

impl Header {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut bytes = [0u8; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.operation.to_le_bytes());
        bytes[8..].copy_from_slice(&self.bytes.to_le_bytes());
        out.write_all(&bytes)
    }

    pub fn read(input: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0u8; HEADER_BYTES];
        input.read_exact(&mut bytes)?;
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Ok(Self { operation: number(0), bytes: number(8) })
    }
}

pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_f32s(out: &mut Vec<u8>, values: &[f32]) {
    out.reserve(values.len() * 4);
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, u32::try_from(bytes.len()).expect("notes are small"));
    out.extend_from_slice(bytes);
}

pub fn put_gradient(out: &mut Vec<u8>, gradient: &Gradient) {
    put_u32(out, u32::try_from(gradient.dense.len()).expect("a chunk holds fewer than 2^32 elements"));
    put_f32s(out, &gradient.dense);
    put_u32(out, gradient.rows.len() as u32);
    for table in &gradient.rows {
        put_u32(out, table.width as u32);
        put_u32(out, table.rows.len() as u32);
        for &row in &table.rows {
            put_u32(out, row);
        }
        put_f32s(out, &table.values);
    }
}

/// Reads what the `put_` functions wrote; every length is checked against what is left.
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.left.split_at_checked(bytes)?;
        self.left = tail;
        Some(head)
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn f32s(&mut self, count: usize) -> Option<Vec<f32>> {
        let bytes = self.take(count.checked_mul(4)?)?;
        Some(bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect())
    }

    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.u32()? as usize;
        Some(self.take(length)?.to_vec())
    }

    pub fn gradient(&mut self) -> Option<Gradient> {
        let elements = self.u32()? as usize;
        let dense = self.f32s(elements)?;
        let tables = self.u32()?;
        let mut rows = Vec::new();
        for _ in 0..tables {
            let width = self.u32()? as usize;
            let count = self.u32()? as usize;
            let ids = self.take(count.checked_mul(4)?)?;
            let ids =
                ids.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect();
            let values = self.f32s(count.checked_mul(width)?)?;
            rows.push(RowGradient { width, rows: ids, values });
        }
        Some(Gradient { dense, rows })
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}
