//! Free slots by kind of worker, kept in the order in which placement looks at them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Device, NumericClass, WorkerId};

/// Replicas of one job share it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub device: Device,
    pub class: NumericClass,
}

/// One worker's free slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub worker: WorkerId,
    pub kind: Kind,
    pub free: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rooms {
    by_kind: BTreeMap<Kind, ByFree>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ByFree {
    order: BTreeSet<(Reverse<u32>, WorkerId)>,
    free: BTreeMap<WorkerId, u32>,
}

impl Rooms {
    pub fn new(rooms: impl IntoIterator<Item = Room>) -> Rooms {
        let mut by_kind: BTreeMap<Kind, ByFree> = BTreeMap::new();
        for room in rooms {
            let group = by_kind.entry(room.kind).or_default();
            group.order.insert((Reverse(room.free), room.worker.clone()));
            group.free.insert(room.worker, room.free);
        }
        Rooms { by_kind }
    }

    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty()
    }

    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.by_kind.keys()
    }

    pub fn most_free_first(&self, kind: &Kind) -> impl Iterator<Item = (u32, &WorkerId)> {
        let order = self.by_kind.get(kind).into_iter().flat_map(|group| &group.order);
        order.map(|(free, worker)| (free.0, worker))
    }

    pub fn free_on(&self, kind: &Kind, worker: &WorkerId) -> u32 {
        self.by_kind.get(kind).and_then(|group| group.free.get(worker)).copied().unwrap_or(0)
    }

    /// All slots of the device together.
    pub fn total(&self, device: Device) -> u32 {
        let groups = self.by_kind.iter().filter(|(kind, _)| kind.device == device);
        groups.flat_map(|(_, group)| group.free.values()).sum()
    }

    /// As many of these slots as are there are no longer free.
    pub fn take(&mut self, kind: &Kind, worker: &WorkerId, slots: u32) {
        self.set(kind, worker, |free| free.saturating_sub(slots));
    }

    /// More slots of a worker that is known already; others stay unknown.
    pub fn give(&mut self, kind: &Kind, worker: &WorkerId, slots: u32) {
        self.set(kind, worker, |free| free.saturating_add(slots));
    }

    fn set(&mut self, kind: &Kind, worker: &WorkerId, change: impl FnOnce(u32) -> u32) {
        let Some(group) = self.by_kind.get_mut(kind) else { return };
        let Some(free) = group.free.get_mut(worker) else { return };
        group.order.remove(&(Reverse(*free), worker.clone()));
        *free = change(*free);
        group.order.insert((Reverse(*free), worker.clone()));
    }
}
