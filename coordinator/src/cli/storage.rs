//! `coord storage`: looks at and copies objects in every kind of storage that jobs can use.

use std::path::Path;

use clap::{Args, Subcommand};
use coord_io::storage::{Storage, open_object};
use serde_json::json;

use super::exit::{Exit, Problem};
use super::printer::{Output, Printer};
use super::storage_list;

#[derive(Debug, Args)]
pub struct StorageFlags {
    #[command(subcommand)]
    command: StorageCommand,
}

#[derive(Debug, Subcommand)]
enum StorageCommand {
    /// List what lies at URLs or paths, one level deep; folders end with a slash
    Ls {
        /// Folders or objects: URLs or paths
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        /// List all objects below, at any depth
        #[arg(long, short)]
        recursive: bool,
    },
    /// Copy objects, or everything below a folder with `--recursive`; the last place is the target
    Cp {
        /// Sources, then the target: URLs or paths
        #[arg(required = true, num_args = 2.., value_name = "URL")]
        urls: Vec<String>,
        /// Copy everything below the sources
        #[arg(long, short)]
        recursive: bool,
    },
    /// Write objects to standard output
    Cat {
        /// Objects: URLs or paths
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
    },
    /// Delete objects, or everything below a folder with `--recursive`
    Rm {
        /// Objects, or folders with `--recursive`: URLs or paths
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
        StorageCommand::Ls { urls, recursive } => storage_list::run(&urls, recursive, printer).await,
        StorageCommand::Cp { urls, recursive } => cp(&urls, recursive, printer).await,
        StorageCommand::Cat { urls } => cat(&urls, printer).await,
        StorageCommand::Rm { urls, recursive, yes } => rm(&urls, recursive, yes, printer).await,
    }
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
        let bytes = match folder.get(&name).await {
            Ok(bytes) => bytes,
            Err(error) => return Err(or_a_folder(error.into(), source, "copies").await),
        };
        let (to, to_name) = if into_folder { (Storage::open(target)?, name.clone()) } else { open_object(target)? };
        to.put(&to_name, bytes).await?;
        copied(&folder.url_of(&name), &to.url_of(&to_name), printer)?;
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
        copied(&from.url_of(&entry.path), &to.url_of(&entry.path), printer)?;
    }
    Ok(())
}

fn copied(from: &str, to: &str, printer: &Printer) -> Result<(), Problem> {
    match printer.output() {
        Output::Table => printer.talk(&format!("{from} -> {to}")),
        Output::Json => printer.json_line(&json!({ "from": from, "to": to }))?,
        Output::Quiet => printer.line(to)?,
    }
    Ok(())
}

async fn rm(urls: &[String], recursive: bool, yes: bool, printer: &Printer) -> Result<Exit, Problem> {
    for url in urls {
        if !recursive {
            let (folder, name) = open_object(url)?;
            if folder.size(&name).await?.is_none() {
                let missing = Problem::new(Exit::NotFound, format!("no object at {}", folder.url_of(&name)));
                return Err(or_a_folder(missing, url, "removes").await);
            }
            folder.delete(&name).await?;
            printer.talk(&format!("removed {}", folder.url_of(&name)));
            removed(&folder.url_of(&name), printer)?;
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
            removed(&folder.url_of(&entry.path), printer)?;
        }
        printer.talk(&format!("removed {} objects below {}", entries.len(), folder.url()));
    }
    Ok(Exit::Done)
}

/// For programs; people are told in a sentence.
fn removed(url: &str, printer: &Printer) -> Result<(), Problem> {
    match printer.output() {
        Output::Table => Ok(()),
        Output::Json => printer.json_line(&json!({ "removed": url })),
        Output::Quiet => printer.line(url),
    }
}

/// The same with a hint, if it is a folder. `does`: what `--recursive` does to the objects below it.
async fn or_a_folder(problem: Problem, url: &str, does: &str) -> Problem {
    let listed = match Storage::open(url) {
        Ok(folder) => folder.list("").await,
        Err(error) => Err(error),
    };
    // Where that cannot be told, the problem itself is what counts.
    match listed.map_or(0, |entries| entries.len()) {
        0 => problem,
        below => problem.hint(format!("`--recursive` {does} the {below} objects below it")),
    }
}
