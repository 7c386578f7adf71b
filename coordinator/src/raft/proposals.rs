//! Who waits for which proposal on this node.

use std::collections::HashMap;

use tokio::sync::oneshot;

/// Waiters by the number that travels inside the entry. Numbers begin at a random point for each start of a node, so
/// that an entry of another node, or of an earlier life of this one, meets no waiter here.
pub struct Proposals<T> {
    next: u64,
    waiters: HashMap<u64, oneshot::Sender<T>>,
}

impl<T> Proposals<T> {
    pub fn new(begin: u64) -> Self {
        Self { next: begin, waiters: HashMap::new() }
    }

    pub fn register(&mut self, waiter: oneshot::Sender<T>) -> u64 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.waiters.insert(number, waiter);
        number
    }

    /// Answers a waiter, if it is ours and still there.
    pub fn answer(&mut self, number: u64, answer: T) {
        if let Some(waiter) = self.waiters.remove(&number) {
            // The caller may have given up: then nobody wants the answer.
            let _ = waiter.send(answer);
        }
    }

    pub fn answer_all(&mut self, mut answer: impl FnMut() -> T) {
        for (_, waiter) in self.waiters.drain() {
            let _ = waiter.send(answer());
        }
    }

    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }
}
