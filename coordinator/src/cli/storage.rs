//! `coord storage`: looks at and copies objects in every kind of storage that jobs can use.

use std::path::Path;

use clap::{Args, Subcommand};
use coord_io::storage::{Entry, Storage, StorageUrl, open_object};
use jiff::tz::TimeZone;
use serde_json::json;

use super::exit::{Exit, Problem};
use super::printer::{Output, Printer, Table};
use super::text;

#[derive(Debug, Args)]
pub struct StorageFlags {
    #[command(subcommand)]
    command: StorageCommand,
}

#[derive(Debug, Subcommand)]
enum StorageCommand {
    /// List the objects below URLs or paths
    Ls {
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
    },
    /// Copy objects, or everything below a folder with `--recursive`; the last place is the target
    Cp {
        #[arg(required = true, num_args = 2.., value_name = "URL")]
        urls: Vec<String>,
        /// Copy everything below the sources
        #[arg(long, short)]
        recursive: bool,
    },
    /// Write objects to standard output
    Cat {
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
    },
    /// Delete objects, or everything below a folder with `--recursive`
    Rm {
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        /// Delete everything below the URLs
        #[arg(long, short)]
        recursive: bool,
        /// Do not ask before a recursive removal
        #[arg(long, short)]
        yes: bool,
    },
}

pub async fn run(flags: StorageFlags, printer: &Printer) -> Result<Exit, Problem> {
    match flags.command {
        StorageCommand::Ls { urls } => ls(&urls, printer).await,
        StorageCommand::Cp { urls, recursive } => cp(&urls, recursive, printer).await,
        StorageCommand::Cat { urls } => cat(&urls, printer).await,
        StorageCommand::Rm { urls, recursive, yes } => rm(&urls, recursive, yes, printer).await,
    }
}

async fn ls(urls: &[String], printer: &Printer) -> Result<Exit, Problem> {
    let zone = TimeZone::system();
    let mut rows: Vec<(String, Entry)> = Vec::new();
    for url in urls {
        let folder = Storage::open(url)?;
        let mut entries = folder.list("").await?;
        if entries.is_empty() {
            entries.extend(object_itself(url).await?);
        }
        if entries.is_empty() {
            return Err(Problem::new(Exit::NotFound, format!("nothing lies at {}", folder.url())));
        }
        rows.extend(entries.into_iter().map(|entry| (folder.url_of(&entry.path), entry)));
    }
    match printer.output() {
        Output::Json => {
            let value = |(url, entry): &(String, Entry)| json!({ "url": url, "bytes": entry.bytes });
            printer.json(&rows.iter().map(value).collect())?;
        }
        Output::Quiet => rows.iter().try_for_each(|(url, _)| printer.line(url))?,
        Output::Table => {
            let mut table = Table::new(&["SIZE", "MODIFIED", "URL"]);
            for (url, entry) in &rows {
                let modified = u64::try_from(entry.modified_millis).unwrap_or(0);
                table.row([text::bytes(entry.bytes), text::time(modified, &zone), url.clone()]);
            }
            printer.table(&table)?;
        }
    }
    Ok(Exit::Done)
}

/// The entry of a URL that names an object and no folder.
async fn object_itself(url: &str) -> Result<Option<Entry>, Problem> {
    let Ok((folder, name)) = open_object(url) else { return Ok(None) };
    if folder.size(&name).await?.is_none() {
        return Ok(None);
    }
    let listed = folder.list("").await?;
    Ok(listed.into_iter().find(|entry| entry.path == name).map(|entry| Entry { path: String::new(), ..entry }))
}

async fn cat(urls: &[String], printer: &Printer) -> Result<Exit, Problem> {
    for url in urls {
        let (folder, name) = open_object(url)?;
        printer.bytes(&folder.get(&name).await?)?;
    }
    Ok(Exit::Done)
}

async fn cp(urls: &[String], recursive: bool, printer: &Printer) -> Result<Exit, Problem> {
    let (target, sources) = urls.split_last().expect("the flags ask for two places at least");
    let into_folder = sources.len() > 1 || recursive || target.ends_with('/') || Path::new(target).is_dir();
    for source in sources {
        if recursive {
            copy_below(source, target, printer).await?;
            continue;
        }
        let (folder, name) = open_object(source)?;
        let bytes = folder.get(&name).await?;
        let (to, to_name) = if into_folder { (Storage::open(target)?, name.clone()) } else { open_object(target)? };
        to.put(&to_name, bytes).await?;
        printer.talk(&format!("{} -> {}", folder.url_of(&name), to.url_of(&to_name)));
    }
    Ok(Exit::Done)
}

async fn copy_below(source: &str, target: &str, printer: &Printer) -> Result<(), Problem> {
    let from = Storage::open(source)?;
    let to = Storage::open(target)?;
    let entries = from.list("").await?;
    if entries.is_empty() {
        return Err(Problem::new(Exit::NotFound, format!("nothing lies below {}", from.url())));
    }
    for entry in &entries {
        to.put(&entry.path, from.get(&entry.path).await?).await?;
        printer.talk(&format!("{} -> {}", from.url_of(&entry.path), to.url_of(&entry.path)));
    }
    Ok(())
}

async fn rm(urls: &[String], recursive: bool, yes: bool, printer: &Printer) -> Result<Exit, Problem> {
    for url in urls {
        if !recursive {
            let (folder, name) = open_object(url)?;
            if folder.size(&name).await?.is_none() {
                return Err(not_an_object(url, &folder.url_of(&name)).await?);
            }
            folder.delete(&name).await?;
            printer.talk(&format!("removed {}", folder.url_of(&name)));
            continue;
        }
        let folder = Storage::open(url)?;
        let entries = folder.list("").await?;
        let question = format!("Remove {} objects below {}?", entries.len(), folder.url());
        if !yes && !super::confirm::confirmed(&question, printer)? {
            printer.talk("Nothing was removed.");
            return Ok(Exit::Failed);
        }
        for entry in &entries {
            folder.delete(&entry.path).await?;
        }
        printer.talk(&format!("removed {} objects below {}", entries.len(), folder.url()));
    }
    Ok(Exit::Done)
}

async fn not_an_object(url: &str, object: &str) -> Result<Problem, Problem> {
    let problem = Problem::new(Exit::NotFound, format!("no object at {object}"));
    let below = Storage::open(StorageUrl::parse(url)?.as_str())?.list("").await?.len();
    Ok(if below > 0 { problem.hint(format!("`--recursive` removes the {below} objects below it")) } else { problem })
}
