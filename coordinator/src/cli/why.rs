//! `coord why`: every blocker of a waiting job, the failure of a failed one.

use clap::Args;
use coord_proto::v1;
use serde_json::json;

use super::exit::{Exit, Problem};
use super::printer::{Output, Printer};
use super::session::Session;
use super::{describe, names, shapes};

#[derive(Debug, Args)]
pub struct WhyFlags {
    /// Job to explain
    pub job: String,
}

pub async fn run(flags: WhyFlags, session: &mut Session) -> Result<Exit, Problem> {
    let job = names::job(&flags.job)?;
    let answer = session.client.explain(&job).await.map_err(|error| session.problem("explain job", error))?;
    print(&job, &answer, &session.printer)?;
    Ok(Exit::Done)
}

fn print(job: &str, answer: &v1::ExplainJobResponse, printer: &Printer) -> Result<(), Problem> {
    let state = shapes::phase_name(answer.phase());
    match printer.output() {
        Output::Json => printer.json(&json!({
            "job": job,
            "state": state,
            "reasons": answer.reasons.iter().map(shapes::reason).collect::<Vec<_>>(),
            "failure": answer.failure.as_ref().map(shapes::failure),
        })),
        Output::Quiet => answer.reasons.iter().try_for_each(|reason| printer.line(&reason.code)),
        Output::Table => {
            printer.line(&format!("Job [{job}] is {state}."))?;
            for reason in &answer.reasons {
                printer.line(&format!("  {}", reason.text))?;
            }
            if let Some(failure) = &answer.failure {
                printer.bytes(describe::failure(failure).as_bytes())?;
            }
            if answer.reasons.is_empty() && answer.failure.is_none() {
                printer.line(
                    match matches!(answer.phase(), v1::Phase::Succeeded | v1::Phase::Failed | v1::Phase::Cancelled) {
                        true => "  It has ended; `coord describe` tells more.",
                        false => "  Nothing holds it up.",
                    },
                )?;
            }
            Ok(())
        }
    }
}
