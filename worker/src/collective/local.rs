//! One rank: the tree is folded where it lies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{AbortHandle, Collective, CollectiveError, Part, Reduced, exchange};

#[derive(Default)]
pub struct LocalCollective {
    aborted: Arc<AtomicBool>,
}

impl LocalCollective {
    pub fn new() -> Self {
        Self::default()
    }

    fn check(&self) -> Result<(), CollectiveError> {
        if self.aborted.load(Ordering::SeqCst) { Err(CollectiveError::Aborted) } else { Ok(()) }
    }
}

impl Collective for LocalCollective {
    fn rank(&self) -> u32 {
        0
    }

    fn world_size(&self) -> u32 {
        1
    }

    fn reduce(&mut self, micro_batches: u32, parts: Vec<Part>, note: Vec<u8>) -> Result<Reduced, CollectiveError> {
        self.check()?;
        Ok(Reduced { gradient: exchange::fold_parts(micro_batches, parts), notes: vec![note] })
    }

    fn gather(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, CollectiveError> {
        self.check()?;
        Ok(vec![bytes])
    }

    fn broadcast(&mut self, _root: u32, bytes: Vec<u8>) -> Result<Vec<u8>, CollectiveError> {
        self.check()?;
        Ok(bytes)
    }

    fn abort_handle(&self) -> AbortHandle {
        let aborted = self.aborted.clone();
        AbortHandle::new(move || aborted.store(true, Ordering::SeqCst))
    }
}
