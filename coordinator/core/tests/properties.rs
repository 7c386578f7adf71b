//! Properties under random histories: the state stays sound, replay equals snapshot plus tail, and what was decided once
//! is not decided again.

mod random;

use coord_common::{Generation, Millis, Phase};
use coordinator_core::{ClusterState, Command, Entry, Liveness, Policy, apply, check, codec, plan};
use proptest::prelude::*;
use random::{Act, World, acts};

/// What proposals change: everything but the clock.
fn without_clock(state: &ClusterState) -> Vec<u8> {
    let mut last_clock = state.clone();
    let far = Entry { at: Millis(u64::MAX / 2), proposal: 0, command: Command::ForgetJobs { jobs: Vec::new() } };
    apply(&mut last_clock, far);
    codec::encode_snapshot(&last_clock)
}

fn replay(entries: &[Vec<u8>], state: &mut ClusterState) {
    for bytes in entries {
        apply(state, codec::decode_entry(bytes).expect("own bytes are readable"));
    }
}

fn generations(state: &ClusterState) -> Vec<(String, Generation, Phase)> {
    state.jobs().map(|job| (job.spec.job.to_string(), job.generation, job.phase)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_keep_the_state_sound_and_generations_growing(history in acts(120)) {
        let mut world = World::default();
        for act in &history {
            let before = generations(&world.state);
            world.play(act);
            let violations = check(&world.state);
            prop_assert!(violations.is_empty(), "after {:?}: {:?}", act, violations);
            for (name, generation, phase) in before {
                let after = world.state.jobs().find(|job| job.spec.job.as_str() == name);
                let Some(job) = after else { prop_assert!(phase.is_final()); continue };
                prop_assert!(job.generation >= generation);
                prop_assert!(job.phase == phase || !phase.is_final(), "{} left {}", name, phase);
            }
        }
    }

    #[test]
    fn replay_equals_snapshot_plus_tail(history in acts(80), cut in 0_usize..400) {
        let mut world = World::default();
        history.iter().for_each(|act| world.play(act));
        let cut = cut.min(world.entries.len());
        let mut replayed = ClusterState::default();
        replay(&world.entries[..cut], &mut replayed);
        let snapshot = codec::encode_snapshot(&replayed);
        let mut restored = codec::decode_snapshot(&snapshot).expect("own bytes are readable");
        prop_assert!(restored == replayed);
        replay(&world.entries[cut..], &mut restored);
        replay(&world.entries[cut..], &mut replayed);
        prop_assert!(restored == replayed);
        prop_assert!(replayed == world.state);
        prop_assert_eq!(codec::encode_snapshot(&restored), codec::encode_snapshot(&world.state));
    }

    #[test]
    fn the_plan_comes_to_rest_and_applying_it_twice_changes_nothing(history in acts(80)) {
        let mut world = World::default();
        history.iter().for_each(|act| world.play(act));
        for _ in 0..4 {
            let commands = plan(&world.state, &world.seen, world.now);
            prop_assert_eq!(&commands, &plan(&world.state, &world.seen, world.now));
            for command in &commands {
                world.apply(command.clone());
                let once = without_clock(&world.state);
                world.apply(command.clone());
                prop_assert!(once == without_clock(&world.state), "{:?} has a second effect", command);
            }
        }
        prop_assert_eq!(plan(&world.state, &world.seen, world.now), Vec::new());
    }

    /// After the storm every job ends: agents answer what they are told, nobody dies any more.
    #[test]
    fn every_job_ends_once_the_world_is_healed(history in acts(80)) {
        let mut world = World::default();
        history.iter().for_each(|act| world.play(act));
        world.heal();
        for job in world.state.jobs() {
            prop_assert!(job.phase.is_final(), "{} is {} after healing: {:?}", job.spec.job, job.phase, job);
        }
        for (worker, _) in world.state.workers() {
            prop_assert_eq!(world.state.slots_used(worker), 0);
        }
    }
}

#[test]
fn a_new_leader_that_has_heard_nobody_plans_nothing() {
    let mut world = World::default();
    for act in
        [Act::Register { worker: 0, restart: false }, Act::Submit { job: 0, min: 1, max: 1, slots: 1, priority: 0 }]
    {
        world.play(&act);
    }
    let seen = Liveness::new(world.now, Policy::default());
    assert_eq!(plan(&world.state, &seen, world.now), Vec::new());
}
