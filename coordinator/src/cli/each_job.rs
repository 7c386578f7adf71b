//! Commands for several jobs: each job has its own outcome, and the worst of them is the command's.

use std::io::Write;

use super::exit::{Exit, Problem};
use super::names;

/// Job ids in the order given, each once; one bad name refuses all, before anything is sent.
pub fn names(texts: &[String]) -> Result<Vec<String>, Problem> {
    let mut jobs: Vec<String> = Vec::new();
    for text in texts {
        let job = names::job(text)?;
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// Adds the outcome of one job to that of the jobs before. What went wrong with one job is said, and the next one has
/// its turn; without a coordinator, or without a reader of the output, the others would fare no better.
pub fn add(so_far: Exit, outcome: Result<Exit, Problem>) -> Result<Exit, Problem> {
    match outcome {
        Ok(exit) => Ok(so_far.worse(exit)),
        Err(problem) if matches!(problem, Problem::PipeClosed) || problem.exit() == Exit::Usage => Err(problem),
        Err(problem) => {
            // Nobody may listen any more; the exit status still tells.
            let _ = std::io::stderr().lock().write_all(problem.render().as_bytes());
            Ok(so_far.worse(problem.exit()))
        }
    }
}

/// `Job [a]`, `Jobs [a], [b]`, for the word `Job`.
pub fn named(word: &str, jobs: &[String]) -> String {
    let names: Vec<String> = jobs.iter().map(|job| format!("[{job}]")).collect();
    format!("{word}{} {}", if jobs.len() == 1 { "" } else { "s" }, names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_comes_once_and_one_bad_name_refuses_all() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&texts(&["b", "a", "b"])).ok(), Some(texts(&["b", "a"])));
        assert!(names(&texts(&["a", "b-c"])).is_err());
        assert_eq!(named("Job", &texts(&["a"])), "Job [a]");
        assert_eq!(named("job", &texts(&["a", "b"])), "jobs [a], [b]");
    }

    #[test]
    fn a_refusal_is_an_outcome_and_a_missing_coordinator_ends_the_command() {
        assert_eq!(add(Exit::Cancelled, Err(Problem::failed("no"))).ok(), Some(Exit::Failed));
        assert!(add(Exit::Done, Err(Problem::usage("nobody answers"))).is_err());
    }
}
