//! Length-delimited messages over the socket between an agent and its replica.

use std::io::{self, Read, Write};

use prost::Message;

/// More than the largest job spec and rendezvous.
pub const MESSAGE_LIMIT: usize = 4 << 20;

/// Four bytes of length, then the message.
pub fn encode(message: &impl Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let mut out = (body.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&body);
    out
}

pub fn write(out: &mut impl Write, message: &impl Message) -> io::Result<()> {
    out.write_all(&encode(message))
}

/// Nothing at the end of the stream.
pub fn read<M: Message + Default>(input: &mut impl Read) -> io::Result<Option<M>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; checked(u32::from_le_bytes(length) as usize)?];
    input.read_exact(&mut body)?;
    decode(&body).map(Some)
}

/// The same for a tokio stream.
pub async fn read_async<M: Message + Default>(
    input: &mut (impl tokio::io::AsyncRead + Unpin),
) -> io::Result<Option<M>> {
    use tokio::io::AsyncReadExt;
    let mut length = [0; 4];
    match input.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; checked(u32::from_le_bytes(length) as usize)?];
    input.read_exact(&mut body).await?;
    decode(&body).map(Some)
}

fn checked(length: usize) -> io::Result<usize> {
    if length > MESSAGE_LIMIT {
        let text = format!("message of {length} bytes, the limit is {MESSAGE_LIMIT}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(length)
}

fn decode<M: Message + Default>(body: &[u8]) -> io::Result<M> {
    M::decode(body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
