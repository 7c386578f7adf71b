//! `coord members`: the coordinator nodes, as the leader sees them, or else the node that answers.

use coord_proto::v1;

use super::exit::{Exit, Problem};
use super::printer::{Output, Table};
use super::session::Session;
use super::{shapes, text};

pub async fn run(session: &mut Session) -> Result<Exit, Problem> {
    let answer = session.client.members().await.map_err(|error| session.problem("list members", error))?;
    match session.printer.output() {
        Output::Json => session.printer.json(&shapes::members(&answer))?,
        Output::Quiet => answer.members.iter().try_for_each(|member| session.printer.line(&member.address))?,
        Output::Table => {
            session.printer.table(&table(&answer))?;
            let leader = if answer.leader == 0 { ", which knows no leader" } else { "" };
            session.printer.talk(&format!(
                "Answered by node {}{leader}; term {}, applied up to {}.",
                answer.node, answer.term, answer.applied
            ));
        }
    }
    // Without a leader the cluster does nothing: a script that asks how it is must see that.
    Ok(if answer.leader == 0 { Exit::Failed } else { Exit::Done })
}

fn table(answer: &v1::ListMembersResponse) -> Table {
    let mut table = Table::new(&["NODE", "ADDRESS", "VOTER", "STATE", "LAST HEARD"]);
    for member in &answer.members {
        let voter = if member.voter { "yes" } else { "no" };
        let heard = match member.last_heard_millis {
            Some(millis) => format!("{} ago", text::duration(millis)),
            None if member.node == answer.node => "answers".to_owned(),
            None => "never".to_owned(),
        };
        table.row([&member.node.to_string(), &member.address, voter, &member.state, &heard]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_the_leader_does_not_hear_is_unreachable_and_says_since_when() {
        let member = |node: u64, state: &str, last_heard_millis| v1::Member {
            node,
            address: format!("host-{node}:7070"),
            voter: true,
            state: state.into(),
            last_heard_millis,
        };
        let answer = v1::ListMembersResponse {
            members: vec![
                member(1, "leader", None),
                member(2, "follower", Some(120)),
                member(3, "unreachable", Some(95_000)),
                member(4, "unreachable", None),
            ],
            node: 1,
            leader: 1,
            ..v1::ListMembersResponse::default()
        };
        let heard = [text::duration(120), text::duration(95_000)];
        let rendered = table(&answer).render();
        let lines: Vec<Vec<&str>> = rendered.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["1", "host-1:7070", "yes", "leader", "answers"]);
        assert_eq!(lines[4], ["4", "host-4:7070", "yes", "unreachable", "never"]);
        for (line, heard) in rendered.lines().skip(2).zip(heard) {
            assert!(line.ends_with(&format!("{heard} ago")), "{rendered}");
        }
    }
}
