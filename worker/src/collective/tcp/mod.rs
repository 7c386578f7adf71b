//! The collective over TCP: one connection for each pair of ranks, direct exchange.

mod mesh;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use mesh::{Listener, Meeting};

use super::frame::{self, FRAME_LIMIT, Header, Reader};
use super::{AbortHandle, Collective, CollectiveError, Part, Reduced, exchange};

/// Largest note or gathered value of one rank.
const NOTE_LIMIT: u64 = 16 << 20;

pub struct TcpCollective {
    rank: u32,
    /// By rank; nothing at this rank's own place.
    peers: Vec<Option<TcpStream>>,
    operation: u64,
    aborted: Arc<AtomicBool>,
}

impl TcpCollective {
    /// Meets all ranks of the generation. See [`Meeting`].
    pub fn connect(listener: Listener, meeting: &Meeting) -> Result<Self, CollectiveError> {
        let peers = mesh::connect(listener, meeting)?;
        Ok(Self { rank: meeting.rank, peers, operation: 0, aborted: Arc::default() })
    }

    fn check(&self) -> Result<(), CollectiveError> {
        if self.aborted.load(Ordering::SeqCst) { Err(CollectiveError::Aborted) } else { Ok(()) }
    }

    /// Sends `outgoing[rank]` to each other rank and receives one frame from each. A thread for each peer sends, so
    /// that no cycle of full socket buffers can stop all ranks.
    fn swap(&mut self, outgoing: &[Vec<u8>], limit: u64) -> Result<Vec<Vec<u8>>, CollectiveError> {
        self.check()?;
        self.operation += 1;
        let operation = self.operation;
        let peers = &self.peers;
        let result = std::thread::scope(|scope| {
            let senders: Vec<_> = peers
                .iter()
                .enumerate()
                .filter_map(|(rank, peer)| peer.as_ref().map(|peer| (rank, peer)))
                .map(|(rank, peer)| {
                    let payload = &outgoing[rank];
                    let sender = scope.spawn(move || send(peer, operation, payload));
                    (rank as u32, sender)
                })
                .collect();
            let mut received: Result<Vec<Vec<u8>>, CollectiveError> = peers
                .iter()
                .enumerate()
                .map(|(rank, peer)| match peer {
                    Some(peer) => receive(peer, rank as u32, operation, limit),
                    None => Ok(outgoing[rank].clone()),
                })
                .collect();
            if received.is_err() {
                // Senders may wait for a peer that waits for nobody any more: end them before they are joined.
                peers.iter().flatten().for_each(hang_up);
            }
            for (rank, sender) in senders {
                let sent = sender.join().expect("a sender does not panic");
                if let (Err(source), true) = (sent, received.is_ok()) {
                    received = Err(CollectiveError::PeerLost { rank, source });
                }
            }
            received
        });
        if result.is_err() {
            Err(self.check().err().unwrap_or_else(|| result.expect_err("checked above")))
        } else {
            result
        }
    }
}

fn hang_up(peer: &TcpStream) {
    // A peer that is gone already cannot be hung up on; that is what was wanted.
    let _ = peer.shutdown(Shutdown::Both);
}

fn send(mut peer: &TcpStream, operation: u64, payload: &[u8]) -> std::io::Result<()> {
    Header { operation, bytes: payload.len() as u64 }.write(&mut peer)?;
    peer.write_all(payload)
}

fn receive(mut peer: &TcpStream, rank: u32, operation: u64, limit: u64) -> Result<Vec<u8>, CollectiveError> {
    let lost = |source| CollectiveError::PeerLost { rank, source };
    let header = Header::read(&mut peer).map_err(lost)?;
    if header.operation != operation {
        return Err(CollectiveError::OutOfStep { rank, expected: operation, got: header.operation });
    }
    if header.bytes > limit {
        return Err(CollectiveError::TooLarge { rank, bytes: header.bytes, limit });
    }
    let mut payload = vec![0; header.bytes as usize];
    peer.read_exact(&mut payload).map_err(lost)?;
    Ok(payload)
}

impl Collective for TcpCollective {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn world_size(&self) -> u32 {
        self.peers.len() as u32
    }

    fn reduce(&mut self, micro_batches: u32, parts: Vec<Part>, note: Vec<u8>) -> Result<Reduced, CollectiveError> {
        let world_size = self.world_size();
        let outgoing: Vec<Vec<u8>> =
            (0..world_size).map(|owner| encode_parts(&parts, owner, world_size, &note)).collect();
        drop(parts);
        let incoming = self.swap(&outgoing, FRAME_LIMIT)?;
        let mut notes = Vec::new();
        let mut mine = Vec::new();
        for (rank, payload) in incoming.iter().enumerate() {
            let (note, parts) = decode_parts(payload)
                .ok_or(CollectiveError::Malformed { rank: rank as u32, what: "parts of a sum" })?;
            notes.push(note);
            mine.extend(parts);
        }
        drop(incoming);
        let finished = exchange::fold_parts(micro_batches, mine);
        let mut payload = Vec::new();
        frame::put_gradient(&mut payload, &finished);
        let incoming = self.swap(&vec![payload; world_size as usize], FRAME_LIMIT)?;
        let mut cuts = Vec::new();
        for (rank, payload) in incoming.iter().enumerate() {
            let cut = Reader::new(payload)
                .gradient()
                .ok_or(CollectiveError::Malformed { rank: rank as u32, what: "finished chunk" })?;
            cuts.push(cut);
        }
        Ok(Reduced { gradient: exchange::join(cuts), notes })
    }

    fn gather(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, CollectiveError> {
        let outgoing = vec![bytes; self.peers.len()];
        self.swap(&outgoing, NOTE_LIMIT)
    }

    fn broadcast(&mut self, root: u32, bytes: Vec<u8>) -> Result<Vec<u8>, CollectiveError> {
        let own = if self.rank == root { bytes } else { Vec::new() };
        let mut all = self.gather(own)?;
        Ok(all.swap_remove(root as usize))
    }

    fn abort_handle(&self) -> AbortHandle {
        let aborted = self.aborted.clone();
        let peers: Vec<TcpStream> = self.peers.iter().flatten().filter_map(|peer| peer.try_clone().ok()).collect();
        AbortHandle::new(move || {
            aborted.store(true, Ordering::SeqCst);
            peers.iter().for_each(hang_up);
        })
    }
}

/// What one owner needs of this rank's parts.
fn encode_parts(parts: &[Part], owner: u32, world_size: u32, note: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_bytes(&mut out, note);
    frame::put_u32(&mut out, parts.len() as u32);
    for (node, sum) in parts {
        frame::put_u32(&mut out, node.start);
        frame::put_u32(&mut out, node.end);
        frame::put_gradient(&mut out, &exchange::cut(sum, owner, world_size));
    }
    out
}

fn decode_parts(payload: &[u8]) -> Option<(Vec<u8>, Vec<Part>)> {
    let mut reader = Reader::new(payload);
    let note = reader.bytes()?;
    let count = reader.u32()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let node = reader.u32()?..reader.u32()?;
        parts.push((node, reader.gradient()?));
    }
    reader.is_empty().then_some((note, parts))
}
