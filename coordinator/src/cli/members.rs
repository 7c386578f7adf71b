//! `coord members`: the coordinator nodes, as the node that answers sees them.

use super::exit::{Exit, Problem};
use super::printer::{Output, Table};
use super::session::Session;
use super::shapes;

pub async fn run(session: &mut Session) -> Result<Exit, Problem> {
    let answer = session.client.members().await.map_err(|error| session.problem("list members", error))?;
    match session.printer.output() {
        Output::Json => session.printer.json(&shapes::members(&answer))?,
        Output::Quiet => answer.members.iter().try_for_each(|member| session.printer.line(&member.address))?,
        Output::Table => {
            let mut table = Table::new(&["NODE", "ADDRESS", "VOTER", "ROLE"]);
            for member in &answer.members {
                let voter = if member.voter { "yes" } else { "no" };
                let role = if member.node == answer.leader { "leader" } else { "follower" };
                table.row([&member.node.to_string(), &member.address, voter, role]);
            }
            session.printer.table(&table)?;
            let leader = if answer.leader == 0 { ", which knows no leader" } else { "" };
            session.printer.talk(&format!(
                "Answered by node {}{leader}; term {}, applied up to {}.",
                answer.node, answer.term, answer.applied
            ));
        }
    }
    Ok(Exit::Done)
}
