//! `coord-worker checkpoints`: lists, verifies and compares what lies in a folder.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Output, fail};
use crate::checkpoint::{CheckpointError, Checkpoints, locate};

#[derive(Debug, Args)]
pub struct CheckpointsFlags {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the checkpoints by their manifests
    Ls(Place),
    /// Read every object of every checkpoint and compare it with its manifest
    Verify(Place),
    /// Print the digest of the newest complete training state, computed from its tensors
    Digest(Place),
}

#[derive(Debug, Args)]
struct Place {
    /// URL or path of a job dir or a train dir
    url: String,
    /// Only this step
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub fn run(flags: &CheckpointsFlags) -> ExitCode {
    let runtime = super::runtime();
    let (Action::Ls(place) | Action::Verify(place) | Action::Digest(place)) = &flags.command;
    let result = runtime.block_on(async {
        let checkpoints = locate(&place.url).await?;
        match &flags.command {
            Action::Ls(_) => list(&checkpoints, place, false).await,
            Action::Verify(_) => list(&checkpoints, place, true).await,
            Action::Digest(_) => digest(&checkpoints, place).await,
        }
    });
    match result {
        Ok(code) => code,
        Err(error @ CheckpointError::None { .. }) => {
            fail(&error, Some("give a job dir or a train dir"));
            ExitCode::from(5)
        }
        Err(CheckpointError::Storage(error)) => fail(&error, error.hint().as_deref()),
        Err(error) => fail(&error, None),
    }
}

struct Row {
    step: u64,
    name: String,
    generation: u64,
    bytes: u64,
    created: String,
    digest: String,
    lineage: Option<String>,
    problem: Option<String>,
}

async fn row(checkpoints: &Checkpoints, step: u64, name: String, verify: bool) -> Result<Row, CheckpointError> {
    let empty = Row {
        step,
        name: name.clone(),
        generation: 0,
        bytes: 0,
        created: String::new(),
        digest: String::new(),
        lineage: None,
        problem: None,
    };
    let told = |error: CheckpointError| match error {
        // The store's trouble is not the checkpoint's.
        CheckpointError::Storage(error) if !error.is_not_found() => Err(CheckpointError::Storage(error)),
        CheckpointError::Invalid { why, .. } => Ok(why),
        other => Ok(other.to_string()),
    };
    let manifest = match checkpoints.manifest(&name).await {
        Ok((manifest, _)) => manifest,
        Err(error) => return Ok(Row { problem: Some(told(error)?), ..empty }),
    };
    let mut row = Row {
        generation: manifest.generation,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        created: manifest.created,
        digest: manifest.state_digest,
        lineage: Some(manifest.lineage),
        ..empty
    };
    if verify && let Err(error) = checkpoints.load(&name).await {
        row.problem = Some(told(error)?);
    }
    Ok(row)
}

async fn list(checkpoints: &Checkpoints, place: &Place, verify: bool) -> Result<ExitCode, CheckpointError> {
    let mut rows = Vec::new();
    for (step, name) in checkpoints.names().await? {
        if place.at.is_none_or(|at| at == step) {
            rows.push(row(checkpoints, step, name, verify).await?);
        }
    }
    if rows.is_empty() {
        return Err(checkpoints.nothing(place.at).await?);
    }
    let own = checkpoints.lineage().await?.map(|run| run.lineage);
    let is_earlier = |row: &Row| own.is_some() && row.lineage.is_some() && row.lineage != own;
    let state = |row: &Row| {
        let known = if verify { "whole" } else { "listed" };
        let run = if is_earlier(row) { ", of an earlier run" } else { "" };
        row.problem.clone().unwrap_or_else(|| format!("{known}{run}"))
    };
    match place.output {
        Output::Table => {
            println!("{:>10}  {:>3}  {:>12}  {:<20}  {:<12}  STATE", "STEP", "GEN", "BYTES", "CREATED", "DIGEST");
            for row in &rows {
                let (created, digest) = (to_the_second(&row.created), row.digest.get(..12).unwrap_or("-"));
                let (step, generation, bytes) = (row.step, row.generation, row.bytes);
                println!("{step:>10}  {generation:>3}  {bytes:>12}  {created:<20}  {digest:<12}  {}", state(row));
            }
        }
        Output::Json => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    json!({
                        "step": row.step, "manifest": row.name, "generation": row.generation, "bytes": row.bytes,
                        "created": row.created, "digest": row.digest, "lineage": row.lineage, "of_this_run": !is_earlier(row),
                        "problem": row.problem, "verified": verify,
                    })
                })
                .collect();
            println!("{}", Value::from(rows));
        }
        Output::Quiet => rows.iter().for_each(|row| println!("{}", row.step)),
    }
    let broken = rows.iter().filter(|row| row.problem.is_some()).count();
    if verify && broken > 0 {
        return Ok(fail(&format!("{broken} of {} checkpoints are not whole", rows.len()), None));
    }
    Ok(ExitCode::SUCCESS)
}

/// `2026-11-30T23:14:48Z`, as all tables show times.
fn to_the_second(created: &str) -> String {
    match created.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => "-".to_owned(),
    }
}

async fn digest(checkpoints: &Checkpoints, place: &Place) -> Result<ExitCode, CheckpointError> {
    let (found, rejected) = checkpoints.choose(place.at, |_| Ok(())).await?;
    for one in &rejected {
        eprintln!("warning: passed over checkpoint of {one}");
    }
    // Verification has computed it from the tensors and compared it with the manifest.
    let digest = found.manifest.state_digest;
    match place.output {
        Output::Table => println!("{digest}  step {}", found.manifest.step),
        Output::Json => println!("{}", json!({"digest": digest, "step": found.manifest.step})),
        Output::Quiet => println!("{digest}"),
    }
    Ok(ExitCode::SUCCESS)
}
