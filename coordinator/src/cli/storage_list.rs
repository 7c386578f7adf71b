//! `coord storage ls`: what lies at a place, one level deep or all of it.

use coord_common::size::bytes;
use coord_io::storage::{Entry, Level, Storage, open_object};
use serde_json::{Value, json};

use super::exit::{Exit, Problem};
use super::printer::{Output, Printer, Table};
use super::{shapes, text};

/// An object, or a folder: then its URL ends with a slash.
struct Row {
    url: String,
    object: Option<Entry>,
}

pub async fn run(urls: &[String], recursive: bool, printer: &Printer) -> Result<Exit, Problem> {
    let mut rows = Vec::new();
    for url in urls {
        let mut found = rows_at(url, recursive).await?;
        // Two names of one store sort as one listing: folders among the objects.
        found.sort_by(|one, other| one.url.cmp(&other.url));
        rows.extend(found);
    }
    match printer.output() {
        Output::Json => printer.json(&rows.iter().map(shape).collect())?,
        Output::Quiet => rows.iter().try_for_each(|row| printer.line(&row.url))?,
        Output::Table => printer.table(&table(&rows))?,
    }
    Ok(Exit::Done)
}

async fn rows_at(url: &str, recursive: bool) -> Result<Vec<Row>, Problem> {
    let folder = Storage::open(url)?;
    let Level { folders, objects } = if recursive {
        Level { folders: Vec::new(), objects: folder.list("").await? }
    } else {
        folder.list_level("").await?
    };
    let of_folder = |path: &String| Row { url: format!("{}/", folder.url_of(path)), object: None };
    let of_object = |entry: Entry| Row { url: folder.url_of(&entry.path), object: Some(entry) };
    let rows: Vec<Row> = folders.iter().map(of_folder).chain(objects.into_iter().map(of_object)).collect();
    if !rows.is_empty() {
        return Ok(rows);
    }
    match object_itself(url).await? {
        Some(entry) => Ok(vec![of_object(entry)]),
        None => Err(Problem::new(Exit::NotFound, format!("nothing lies at {}", folder.url()))),
    }
}

/// The entry of a URL that names an object and no folder.
async fn object_itself(url: &str) -> Result<Option<Entry>, Problem> {
    let Ok((folder, name)) = open_object(url) else { return Ok(None) };
    if folder.size(&name).await?.is_none() {
        return Ok(None);
    }
    let listed = folder.list_level("").await?.objects;
    Ok(listed.into_iter().find(|entry| entry.path == name).map(|entry| Entry { path: String::new(), ..entry }))
}

fn modified(entry: &Entry) -> u64 {
    u64::try_from(entry.modified_millis).unwrap_or(0)
}

fn shape(row: &Row) -> Value {
    json!({
        "url": row.url,
        "folder": row.object.is_none(),
        "bytes": row.object.as_ref().map(|entry| entry.bytes),
        "modified": row.object.as_ref().and_then(|entry| shapes::time(modified(entry))),
    })
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["SIZE", "MODIFIED", "URL"]);
    for Row { url, object } in rows {
        match object {
            Some(entry) => table.row([bytes(entry.bytes), text::stamp(modified(entry)), url.clone()]),
            None => table.row(["-", "-", url.as_str()]),
        }
    }
    table
}
