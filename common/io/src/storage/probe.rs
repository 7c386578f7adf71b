//! The write-read-delete probe that runs before a job's first step.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Storage, StorageError};

pub async fn probe(storage: &Storage) -> Result<(), StorageError> {
    // Two jobs may probe one prefix at once: the name is this process's own.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
    let name = format!(".coord-probe-{}-{nanos}", std::process::id());
    let content = name.clone().into_bytes();
    storage.put(&name, content.clone()).await?;
    let read = storage.get(&name).await;
    let deleted = storage.delete(&name).await;
    let read = read?;
    deleted?;
    if read != content {
        return Err(StorageError::Other {
            operation: "read back",
            url: storage.url_of(&name),
            status: None,
            identity: "self".to_owned(),
            text: format!("wrote {} bytes and read {} others", content.len(), read.len()),
        });
    }
    Ok(())
}
