//! How the ranks of a generation find each other: every pair shares one connection, checked by a handshake.
//!
//! A rank calls all smaller ranks and is called by all larger ones. The caller says job, generation, secret and rank;
//! the called one accepts, or turns it away with a reason. A stranger costs nothing but its own connection.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::collective::CollectiveError;
use crate::collective::frame::{self, Reader};

const MAGIC: &[u8; 8] = b"coordv01";
const HANDSHAKE_LIMIT: usize = 4096;
/// A caller that says nothing within this time is a stranger.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const BACKOFF_FIRST: Duration = Duration::from_millis(10);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// The socket whose address is advertised. It is the one that stays open, so no other process can take the port in
/// between.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

impl Listener {
    /// Listens on a free port of `host`.
    pub fn bind(host: &str) -> Result<Self, CollectiveError> {
        let listen = |source| CollectiveError::Listen { address: host.to_owned(), source };
        let socket = TcpListener::bind((host, 0)).map_err(listen)?;
        Ok(Self { socket })
    }

    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }
}

/// Who meets whom.
#[derive(Debug, Clone)]
pub struct Meeting {
    pub job: String,
    pub generation: u64,
    pub secret: String,
    pub rank: u32,
    /// `host:port` by rank.
    pub endpoints: Vec<String>,
    /// How long all of it may take.
    pub timeout: Duration,
}

impl Meeting {
    fn hello(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        frame::put_bytes(&mut out, self.job.as_bytes());
        frame::put_bytes(&mut out, &self.generation.to_le_bytes());
        frame::put_bytes(&mut out, self.secret.as_bytes());
        frame::put_u32(&mut out, self.rank);
        out
    }

    /// The rank of a caller that belongs here, or why it does not.
    fn admit(&self, hello: &[u8], peers: &[Option<TcpStream>]) -> Result<u32, String> {
        let rest = hello.strip_prefix(MAGIC).ok_or("this port belongs to a coord training job")?;
        let mut reader = Reader::new(rest);
        let mut fields = || Some((reader.bytes()?, reader.bytes()?, reader.bytes()?, reader.u32()?));
        let (job, generation, secret, rank) = fields().ok_or("malformed greeting")?;
        if job != self.job.as_bytes() {
            return Err("this port belongs to another job".to_owned());
        }
        if generation != self.generation.to_le_bytes() {
            let theirs = generation.try_into().map(u64::from_le_bytes).map_or("?".to_owned(), |n| n.to_string());
            return Err(format!("generation {theirs} is over, this is generation {}", self.generation));
        }
        if secret != self.secret.as_bytes() {
            return Err("wrong secret".to_owned());
        }
        match peers.get(rank as usize) {
            Some(None) if rank > self.rank => Ok(rank),
            _ => Err(format!("rank {rank} is not expected here")),
        }
    }
}

/// Connects to all other ranks; nothing at this rank's own place.
pub fn connect(listener: Listener, meeting: &Meeting) -> Result<Vec<Option<TcpStream>>, CollectiveError> {
    let deadline = Instant::now() + meeting.timeout;
    let mut peers: Vec<Option<TcpStream>> = meeting.endpoints.iter().map(|_| None).collect();
    for rank in 0..meeting.rank {
        peers[rank as usize] = Some(call(meeting, rank, deadline)?);
    }
    let lost = |source| CollectiveError::Listen { address: "peers".to_owned(), source };
    listener.socket.set_nonblocking(true).map_err(lost)?;
    let mut pause = BACKOFF_FIRST / 10;
    while let Some(missing) = (meeting.rank + 1..peers.len() as u32).find(|&rank| peers[rank as usize].is_none()) {
        match listener.socket.accept() {
            Ok((stream, _)) => {
                if let Some((rank, stream)) = answer(stream, meeting, &peers) {
                    peers[rank as usize] = Some(stream);
                }
                pause = BACKOFF_FIRST / 10;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() > deadline {
                    return Err(unreachable(meeting, missing, "it never called".to_owned()));
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(BACKOFF_FIRST);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(lost(error)),
        }
    }
    Ok(peers)
}

fn unreachable(meeting: &Meeting, rank: u32, last: String) -> CollectiveError {
    let endpoint = meeting.endpoints[rank as usize].clone();
    CollectiveError::Unreachable { rank, endpoint, seconds: meeting.timeout.as_secs(), last }
}

/// Calls a smaller rank until a handshake succeeds. The name is looked up anew each time.
fn call(meeting: &Meeting, rank: u32, deadline: Instant) -> Result<TcpStream, CollectiveError> {
    let endpoint = &meeting.endpoints[rank as usize];
    let mut pause = BACKOFF_FIRST;
    loop {
        let last = match try_call(endpoint, meeting) {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(reason)) => return Err(CollectiveError::TurnedAway { rank, reason }),
            Err(error) => error.to_string(),
        };
        if Instant::now() + pause > deadline {
            return Err(unreachable(meeting, rank, last));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(BACKOFF_MAX);
    }
}

fn try_call(endpoint: &str, meeting: &Meeting) -> io::Result<Result<TcpStream, String>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in endpoint.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(mut stream) => {
                configure(&stream)?;
                stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT * 2))?;
                write_block(&mut stream, &meeting.hello())?;
                let reply = read_block(&mut stream)?;
                stream.set_read_timeout(None)?;
                return Ok(if reply.is_empty() {
                    Ok(stream)
                } else {
                    Err(String::from_utf8_lossy(&reply).into_owned())
                });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Answers a caller; nothing when it was turned away or went silent.
fn answer(mut stream: TcpStream, meeting: &Meeting, peers: &[Option<TcpStream>]) -> Option<(u32, TcpStream)> {
    let mut greet = || -> io::Result<Result<u32, String>> {
        stream.set_nonblocking(false)?;
        configure(&stream)?;
        stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
        let hello = read_block(&mut stream)?;
        let verdict = meeting.admit(&hello, peers);
        let reply = verdict.as_ref().err().cloned().unwrap_or_default();
        write_block(&mut stream, reply.as_bytes())?;
        stream.set_read_timeout(None)?;
        Ok(verdict)
    };
    match greet() {
        Ok(Ok(rank)) => Some((rank, stream)),
        Ok(Err(reason)) => {
            tracing::info!(reason, "turned a caller away");
            None
        }
        Err(error) => {
            tracing::info!(%error, "a caller went silent");
            None
        }
    }
}

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

fn write_block(stream: &mut TcpStream, block: &[u8]) -> io::Result<()> {
    let mut out = (block.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(block);
    stream.write_all(&out)
}

fn read_block(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > HANDSHAKE_LIMIT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("greeting of {length} bytes")));
    }
    let mut block = vec![0; length];
    stream.read_exact(&mut block)?;
    Ok(block)
}

#[cfg(test)]
mod tests;
