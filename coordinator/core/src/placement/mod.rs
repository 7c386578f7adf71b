//! Where a gang goes: all of it now, or nothing and the exact reason.

mod rooms;

use std::collections::BTreeSet;

use coord_common::{Device, NumericClass, WorkerId};

pub use rooms::{Kind, Room, Rooms};

use crate::blocker::Blocker;

#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    pub rooms: &'a Rooms,
    pub device: Device,
    /// Bound to it, once the job has run.
    pub class: Option<&'a NumericClass>,
    /// World sizes that the job accepts.
    pub min: u32,
    pub max: u32,
    pub slots_each: u32,
    /// Not to be used for this job now.
    pub avoid: &'a BTreeSet<WorkerId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Place(Placement),
    Wait(Vec<Blocker>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub kind: Kind,
    /// The worker of each rank.
    pub workers: Vec<WorkerId>,
}

/// As many replicas as fit up to `max`, at least `min`, on workers of one kind: in the class where most fit (ties: first
/// class), on the workers with most free slots first (ties: first id), so that a gang spans few workers.
pub fn solve(problem: &Problem) -> Verdict {
    let kinds = problem.rooms.kinds().filter(|kind| kind.device == problem.device);
    let kinds = kinds.filter(|kind| problem.class.is_none_or(|class| *class == kind.class));
    let mut best: Option<Placement> = None;
    for kind in kinds {
        let workers = fill(problem, kind);
        if best.as_ref().is_none_or(|placement| workers.len() > placement.workers.len()) {
            best = Some(Placement { kind: kind.clone(), workers });
        }
    }
    match best {
        Some(placement) if placement.workers.len() >= problem.min as usize => {
            debug_assert!(is_sound(problem, &placement), "{placement:?} breaks the rules of {problem:?}");
            Verdict::Place(placement)
        }
        _ => Verdict::Wait(vec![blocker(problem)]),
    }
}

fn fill(problem: &Problem, kind: &Kind) -> Vec<WorkerId> {
    let mut workers = Vec::new();
    for (free, worker) in problem.rooms.most_free_first(kind) {
        let wanted = problem.max as usize - workers.len();
        if wanted == 0 || free < problem.slots_each {
            break;
        }
        if !problem.avoid.contains(worker) {
            let replicas = ((free / problem.slots_each) as usize).min(wanted);
            workers.extend(std::iter::repeat_n(worker.clone(), replicas));
        }
    }
    workers
}

fn blocker(problem: &Problem) -> Blocker {
    let (rooms, device) = (problem.rooms, problem.device);
    let wanted = problem.min.saturating_mul(problem.slots_each);
    if rooms.is_empty() {
        return Blocker::NoWorkers;
    }
    if !rooms.kinds().any(|kind| kind.device == device) {
        return Blocker::NoSuchDevice { device };
    }
    let free_of = |kind: &Kind| -> u32 {
        let usable = rooms.most_free_first(kind).filter(|(_, worker)| !problem.avoid.contains(*worker));
        usable.map(|(free, _)| free).sum()
    };
    let of_device = || rooms.kinds().filter(|kind| kind.device == device);
    let free: u32 = of_device().map(free_of).sum();
    let (class, in_class) = match problem.class {
        Some(class) => (Some(class.clone()), of_device().filter(|kind| kind.class == *class).map(free_of).sum()),
        None => (None, of_device().map(free_of).max().unwrap_or(0)),
    };
    if free >= wanted && in_class < wanted {
        Blocker::NumericClass { wanted, free: in_class, class }
    } else {
        Blocker::FreeSlots { wanted, each: problem.slots_each, free: in_class }
    }
}

/// The post-conditions of `solve`.
fn is_sound(problem: &Problem, placement: &Placement) -> bool {
    let size = placement.workers.len();
    let fits_each = placement.workers.iter().all(|worker| {
        let replicas = placement.workers.iter().filter(|other| *other == worker).count() as u32;
        let free = problem.rooms.free_on(&placement.kind, worker);
        !problem.avoid.contains(worker) && replicas * problem.slots_each <= free
    });
    let class_agrees = problem.class.is_none_or(|class| *class == placement.kind.class);
    (problem.min as usize..=problem.max as usize).contains(&size) && fits_each && class_agrees
}

#[cfg(test)]
#[path = "placement_test.rs"]
mod tests;
