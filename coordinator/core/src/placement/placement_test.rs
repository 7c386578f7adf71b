//! Tests of `solve`: sizes, order, ties and the reasons to wait.

use super::*;

fn worker(name: &str) -> WorkerId {
    WorkerId::parse(name).expect("valid")
}

fn rooms(list: &[(&str, Device, &str, u32)]) -> Rooms {
    Rooms::new(list.iter().map(|(name, device, class, free)| Room {
        worker: worker(name),
        kind: Kind { device: *device, class: NumericClass::new(class) },
        free: *free,
    }))
}

fn solve_on(rooms: &Rooms, sizes: (u32, u32), slots_each: u32) -> Result<Vec<String>, Vec<Blocker>> {
    let avoid = BTreeSet::new();
    let problem =
        Problem { rooms, device: Device::Cpu, class: None, min: sizes.0, max: sizes.1, slots_each, avoid: &avoid };
    match solve(&problem) {
        Verdict::Place(placement) => Ok(placement.workers.iter().map(WorkerId::to_string).collect()),
        Verdict::Wait(blockers) => Err(blockers),
    }
}

#[test]
fn the_gang_fills_the_workers_with_most_free_slots_first_and_ties_go_by_id() {
    let rooms = rooms(&[("c", Device::Cpu, "x", 2), ("b", Device::Cpu, "x", 2), ("a", Device::Cpu, "x", 1)]);
    assert_eq!(solve_on(&rooms, (3, 3), 1), Ok(vec!["b".into(), "b".into(), "c".into()]));
}

#[test]
fn as_many_as_fit_are_placed_up_to_the_maximum_and_none_below_the_minimum() {
    let rooms = rooms(&[("a", Device::Cpu, "x", 3)]);
    assert_eq!(solve_on(&rooms, (1, 8), 1).map(|placed| placed.len()), Ok(3));
    assert_eq!(solve_on(&rooms, (4, 8), 1), Err(vec![Blocker::FreeSlots { wanted: 4, each: 1, free: 3 }]));
    assert_eq!(solve_on(&rooms, (1, 8), 2).map(|placed| placed.len()), Ok(1));
}

/// SCH-10, in slots: the larger worker must not be wasted.
#[test]
fn replicas_of_several_slots_never_straddle_workers() {
    let rooms = rooms(&[("a", Device::Cpu, "x", 40), ("b", Device::Cpu, "x", 22)]);
    assert_eq!(solve_on(&rooms, (3, 3), 20), Ok(vec!["a".into(), "a".into(), "b".into()]));
    assert_eq!(solve_on(&rooms, (4, 4), 20), Err(vec![Blocker::FreeSlots { wanted: 80, each: 20, free: 62 }]));
}

#[test]
fn a_gang_never_mixes_numeric_classes_and_says_so() {
    let rooms = rooms(&[("a", Device::Cpu, "x", 2), ("b", Device::Cpu, "y", 3)]);
    assert_eq!(solve_on(&rooms, (2, 4), 1), Ok(vec!["b".into(), "b".into(), "b".into()]));
    assert_eq!(solve_on(&rooms, (4, 4), 1), Err(vec![Blocker::NumericClass { wanted: 4, free: 3, class: None }]));
    let (class, avoid) = (NumericClass::new("x"), BTreeSet::new());
    let bound = Problem {
        rooms: &rooms,
        device: Device::Cpu,
        class: Some(&class),
        min: 3,
        max: 3,
        slots_each: 1,
        avoid: &avoid,
    };
    let wait = Verdict::Wait(vec![Blocker::NumericClass { wanted: 3, free: 2, class: Some(class.clone()) }]);
    assert_eq!(solve(&bound), wait);
}

#[test]
fn missing_workers_and_missing_devices_are_told_apart() {
    assert_eq!(solve_on(&rooms(&[]), (1, 1), 1), Err(vec![Blocker::NoWorkers]));
    let only_cuda = rooms(&[("a", Device::Cuda, "x", 2)]);
    assert_eq!(solve_on(&only_cuda, (1, 1), 1), Err(vec![Blocker::NoSuchDevice { device: Device::Cpu }]));
}

#[test]
fn avoided_workers_are_passed_over() {
    let rooms = rooms(&[("a", Device::Cpu, "x", 4), ("b", Device::Cpu, "x", 1)]);
    let avoid = BTreeSet::from([worker("a")]);
    let problem =
        Problem { rooms: &rooms, device: Device::Cpu, class: None, min: 1, max: 2, slots_each: 1, avoid: &avoid };
    let Verdict::Place(placement) = solve(&problem) else { panic!("there is room on b") };
    assert_eq!(placement.workers, [worker("b")]);
}
