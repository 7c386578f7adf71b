//! Names that are checked before anything is sent: job ids, labels, replicas.

use std::collections::BTreeMap;
use std::path::Path;

use coord_common::rank::{Rank, rank_of_name};
use coord_common::{Coded, JobId, replica_name};

use super::exit::{Exit, Problem};

/// A job id, or the rule with a corrected id.
pub fn job(text: &str) -> Result<String, Problem> {
    JobId::parse(text).map(|id| id.to_string()).map_err(|error| coded(&error))
}

/// A job id where a path or URL would do as well.
pub fn job_or_place(text: &str) -> Result<String, Problem> {
    job(text).map_err(|problem| problem.hint(format!("a path begins with `.` or `/`: `./{text}`; a URL holds `://`")))
}

/// What went wrong with a word that was taken for a job, though a folder of that name lies here.
pub fn folder_hint(problem: Problem, text: &str) -> Problem {
    let may_mean_the_folder = matches!(problem.exit(), Exit::NotFound | Exit::Usage) && Path::new(text).is_dir();
    if may_mean_the_folder {
        problem.hint(format!("`{text}` was taken for a job; for the folder write `./{text}`"))
    } else {
        problem
    }
}

/// A refusal of the domain types, said before anything was sent: bad usage.
pub fn coded(error: &impl Coded) -> Problem {
    Problem::Said { exit: Exit::Usage, message: error.to_string(), hint: error.hint() }
}

/// `key=value` pairs.
pub fn labels(pairs: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let mut labels = BTreeMap::new();
    for pair in pairs {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| Problem::usage(format!("a label must be KEY=VALUE, got `{pair}`")))?;
        if labels.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Problem::usage(format!("label `{key}` is given twice")));
        }
    }
    Ok(labels)
}

/// The task name of a replica given by its rank or by its name; `service` is the platform's own log.
pub fn task(text: &str) -> Result<String, Problem> {
    if text == "service" || rank_of_name(text).is_some() {
        return Ok(text.to_owned());
    }
    text.parse().map(|rank| replica_name(Rank(rank))).map_err(|_| {
        Problem::usage(format!("unknown replica `{text}`"))
            .hint("give a rank (`0`), a replica name (`master-replica-0`, `worker-replica-1`) or `service`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JOB-01, in the client.
    #[test]
    fn a_refused_job_id_quotes_the_rule_and_proposes_a_valid_one() {
        for valid in ["my_job", "My_Job", "a"] {
            assert_eq!(job(valid).ok().as_deref(), Some(valid));
        }
        let refused = job("my-job").expect_err("a dash is not allowed");
        assert_eq!(refused.exit(), Exit::Usage);
        assert_eq!(
            refused.render(),
            "error: job id \"my-job\" is not valid (letters, digits, underscore, first a letter, at most 128)\n\
             hint: use `my_job`\n"
        );
        for bad in ["9lives", "night:run", "übung", "", &"a".repeat(200)] {
            assert!(job(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_replica_is_named_by_rank_or_by_name() {
        let named = |text| task(text).ok();
        assert_eq!(named("0").as_deref(), Some("master-replica-0"));
        assert_eq!(named("2").as_deref(), Some("worker-replica-2"));
        assert_eq!(named("worker-replica-2").as_deref(), Some("worker-replica-2"));
        assert_eq!(named("service").as_deref(), Some("service"));
        for bad in ["master-replica-1", "x", "-1", ""] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }

    #[test]
    fn labels_are_pairs_and_each_key_comes_once() {
        let pairs = |texts: &[&str]| labels(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(pairs(&["team=nlp", "empty="]).map(|labels| labels.len()).ok(), Some(2));
        assert!(pairs(&["team"]).is_err());
        assert!(pairs(&["a=1", "a=2"]).is_err());
    }
}
