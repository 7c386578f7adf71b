//! One suite over all collectives: whatever the number of ranks, the same bits.

use std::time::Duration;

use super::tcp::{Listener, Meeting};
use super::*;
use crate::random::{Keyed, Purpose};
use crate::train::accumulate::Accumulator;
use crate::train::gradient::RowGradient;
use crate::train::tree::shares;

fn leaf(micro: u32) -> Gradient {
    let random = Keyed::new(5, Purpose::Initial, u64::from(micro), 0);
    let dense = (0..1003).map(|index| random.unit_f32(index) - 0.5).collect();
    let ids: Vec<u32> = (0..40).filter(|id| random.u64(2000 + u64::from(*id)).is_multiple_of(3)).collect();
    let values = (0..ids.len() as u64 * 3).map(|index| random.unit_f32(5000 + index)).collect();
    Gradient { dense, rows: vec![RowGradient { width: 3, rows: ids, values }, RowGradient::new(1)] }
}

fn parts(micro_batches: u32, rank: u32, ranks: u32) -> Vec<Part> {
    let share = shares(micro_batches, ranks)[rank as usize].clone();
    let sums = Accumulator::new(micro_batches, share.clone());
    share.for_each(|micro| sums.add(micro, leaf(micro)));
    sums.finish()
}

/// Runs `work` on every rank of a TCP collective, each in its own thread.
fn on_ranks<T: Send>(ranks: u32, work: impl Fn(TcpCollective) -> T + Sync) -> Vec<T> {
    let listeners: Vec<Listener> = (0..ranks).map(|_| Listener::bind("127.0.0.1").unwrap()).collect();
    let endpoints: Vec<String> =
        listeners.iter().map(|listener| format!("127.0.0.1:{}", listener.port().unwrap())).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .enumerate()
            .map(|(rank, listener)| {
                let meeting = Meeting {
                    job: "conformance".to_owned(),
                    generation: 1,
                    secret: String::new(),
                    rank: rank as u32,
                    endpoints: endpoints.clone(),
                    timeout: Duration::from_secs(30),
                };
                let work = &work;
                scope.spawn(move || work(TcpCollective::connect(listener, &meeting).unwrap()))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_number_of_ranks_gives_the_bits_of_one() {
    let micro_batches = 8;
    let alone = LocalCollective::new().reduce(micro_batches, parts(micro_batches, 0, 1), vec![9]).unwrap();
    for ranks in [1, 2, 3, 5, 8] {
        let reduced = on_ranks(ranks, |mut collective| {
            let rank = collective.rank();
            collective.reduce(micro_batches, parts(micro_batches, rank, ranks), vec![rank as u8]).unwrap()
        });
        for one in reduced {
            assert_eq!(one.gradient, alone.gradient, "{ranks} ranks");
            assert_eq!(one.notes, (0..ranks).map(|rank| vec![rank as u8]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn gather_and_broadcast_reach_every_rank() {
    let all = on_ranks(3, |mut collective| {
        let own = vec![collective.rank() as u8; 3];
        (collective.gather(own.clone()).unwrap(), collective.broadcast(1, own).unwrap())
    });
    for (gathered, sent) in all {
        assert_eq!(gathered, [[0; 3], [1; 3], [2; 3]]);
        assert_eq!(sent, [1; 3]);
    }
}

#[test]
fn an_abort_ends_a_call_that_waits() {
    let results = on_ranks(2, |mut collective| {
        if collective.rank() == 0 {
            let abort = collective.abort_handle();
            let waiter = std::thread::spawn(move || collective.gather(vec![1]));
            abort.abort();
            matches!(waiter.join().unwrap(), Err(CollectiveError::Aborted))
        } else {
            matches!(collective.broadcast(0, Vec::new()), Ok(_) | Err(CollectiveError::PeerLost { rank: 0, .. }))
                && matches!(collective.gather(Vec::new()), Err(CollectiveError::PeerLost { rank: 0, .. }))
        }
    });
    assert_eq!(results, [true, true]);
}

#[test]
fn a_rank_that_ends_is_named_by_the_others() {
    let results = on_ranks(3, |mut collective| {
        if collective.rank() == 1 {
            return true;
        }
        matches!(collective.gather(vec![0]), Err(CollectiveError::PeerLost { .. }))
    });
    assert_eq!(results, [true; 3]);
}
