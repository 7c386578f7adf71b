//! What killed writers leave on a local disk: the store's library writes `name#1` beside `name` and renames it.

use std::path::Path;

/// Removes such files of objects whose names begin with `prefix`, in one folder. Listings never show them.
pub async fn sweep(folder: &Path, prefix: &str) -> std::io::Result<()> {
    let mut entries = match tokio::fs::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    while let Some(entry) = entries.next_entry().await? {
        let name = entry.file_name();
        let staged = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix)?.rsplit_once('#'))
            .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()));
        if staged {
            tokio::fs::remove_file(entry.path()).await?;
        }
    }
    Ok(())
}
