//! Pairs of like length, kept as flat arrays.

/// Exclusive bounds: a pair fits if its source is shorter than `source` and its target, EOS included, than `target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketShape {
    pub source: usize,
    pub target: usize,
}

/// The buckets of the translate program; a pair goes to the first that it fits.
pub const TRANSLATE_BUCKETS: [BucketShape; 4] = [
    BucketShape { source: 5, target: 10 },
    BucketShape { source: 10, target: 15 },
    BucketShape { source: 20, target: 25 },
    BucketShape { source: 40, target: 50 },
];

impl BucketShape {
    fn fits(self, source: usize, target_with_eos: usize) -> bool {
        source < self.source && target_with_eos < self.target
    }

    /// The most source tokens, and the most target tokens without EOS, that fit one of `shapes`.
    pub fn longest(shapes: &[Self]) -> (usize, usize) {
        let most = |len: fn(&Self) -> usize| shapes.iter().map(len).max().unwrap_or(0);
        (most(|shape| shape.source - 1), most(|shape| shape.target - 2))
    }

    pub fn first_fitting(shapes: &[Self], source: usize, target_with_eos: usize) -> Option<usize> {
        shapes.iter().position(|shape| shape.fits(source, target_with_eos))
    }
}

/// Lists of ids end to end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Lists {
    ids: Vec<u32>,
    ends: Vec<u64>,
}

impl Lists {
    fn push(&mut self, list: &[u32]) {
        self.ids.extend_from_slice(list);
        self.ends.push(self.ids.len() as u64);
    }

    fn get(&self, index: usize) -> &[u32] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.ids[start as usize..self.ends[index] as usize]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    shape: BucketShape,
    sources: Lists,
    targets: Lists,
    lines: Vec<u64>,
}

impl Bucket {
    pub fn new(shape: BucketShape) -> Self {
        Self { shape, sources: Lists::default(), targets: Lists::default(), lines: Vec::new() }
    }

    /// `target` ends with EOS; `line` counts from 0.
    pub fn push(&mut self, source: &[u32], target: &[u32], line: u64) {
        debug_assert!(self.shape.fits(source.len(), target.len()), "a pair that does not fit has no place in a batch");
        self.sources.push(source);
        self.targets.push(target);
        self.lines.push(line);
    }

    pub fn shape(&self) -> BucketShape {
        self.shape
    }

    /// Pairs.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn source(&self, pair: usize) -> &[u32] {
        self.sources.get(pair)
    }

    /// Ends with EOS.
    pub fn target(&self, pair: usize) -> &[u32] {
        self.targets.get(pair)
    }

    /// Line number in the data file, from 0.
    pub fn line(&self, pair: usize) -> u64 {
        self.lines[pair]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_are_strict() {
        let first = |source, target| BucketShape::first_fitting(&TRANSLATE_BUCKETS, source, target);
        assert_eq!(first(0, 1), Some(0));
        assert_eq!(first(4, 9), Some(0));
        assert_eq!(first(5, 9), Some(1));
        assert_eq!(first(4, 10), Some(1));
        assert_eq!(first(39, 49), Some(3));
        assert_eq!(first(40, 1), None);
        assert_eq!(first(1, 50), None);
    }

    #[test]
    fn pairs_come_back_as_they_were_put_in() {
        let mut bucket = Bucket::new(TRANSLATE_BUCKETS[0]);
        bucket.push(&[7, 8], &[9, 2], 3);
        bucket.push(&[], &[2], 5);
        assert_eq!((bucket.source(0), bucket.target(0), bucket.line(0)), (&[7, 8][..], &[9, 2][..], 3));
        assert_eq!((bucket.source(1), bucket.target(1), bucket.line(1)), (&[][..], &[2][..], 5));
        assert_eq!(bucket.len(), 2);
    }
}
