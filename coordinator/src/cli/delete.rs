//! `coord delete`: removes a finished job from the coordinator's state.

use clap::Args;

use super::exit::{Exit, Problem};
use super::session::Session;
use super::{confirm, names};

#[derive(Debug, Args)]
pub struct DeleteFlags {
    /// Finished job to remove; its objects in storage stay, its id stays taken
    pub job: String,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

pub async fn run(flags: DeleteFlags, session: &mut Session) -> Result<Exit, Problem> {
    let job = names::job(&flags.job)?;
    let question = format!("Remove job [{job}] from the list for good?");
    if !flags.yes && !confirm::confirmed(&question, &session.printer)? {
        session.printer.talk("Nothing was removed.");
        return Ok(Exit::Failed);
    }
    session.client.delete(&job).await.map_err(|error| session.problem("delete job", error))?;
    session.printer.talk(&format!("Job [{job}] was removed. Its objects in storage stay; its id stays taken."));
    Ok(Exit::Done)
}
