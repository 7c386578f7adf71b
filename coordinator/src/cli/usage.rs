//! Turns what the flag parser found into the project's own words: one error line, one hint.

use std::error::Error;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exit::Problem;

/// The problem behind a parser error. `arguments` are those after the program's name.
pub fn problem(error: &clap::Error, arguments: &[OsString]) -> Problem {
    let argument = context(error, ContextKind::InvalidArg);
    let value = context(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown_argument(error, &argument, arguments),
        ErrorKind::InvalidSubcommand => {
            let name = context(error, ContextKind::InvalidSubcommand);
            with_help(Problem::usage(format!("unknown command `{name}`")), suggestion(error), arguments)
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            with_help(Problem::usage("no command given"), None, arguments)
        }
        ErrorKind::MissingRequiredArgument => {
            with_help(Problem::usage(format!("missing {}", argument.replace(", ", " and "))), None, arguments)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            with_help(Problem::usage(format!("a value is required for `{argument}`")), None, arguments)
        }
        ErrorKind::InvalidValue => {
            let valid = context(error, ContextKind::ValidValue);
            let message = format!("invalid value `{value}` for `{argument}`: must be one of {valid}");
            with_help(Problem::usage(message), suggestion(error), arguments)
        }
        ErrorKind::ValueValidation => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            with_help(Problem::usage(format!("invalid value `{value}` for `{argument}`{cause}")), None, arguments)
        }
        ErrorKind::ArgumentConflict => {
            let other = context(error, ContextKind::PriorArg);
            let message = if other.is_empty() || other == argument {
                format!("`{argument}` cannot be given twice")
            } else {
                format!("`{argument}` cannot be used with `{other}`")
            };
            with_help(Problem::usage(message), None, arguments)
        }
        ErrorKind::TooFewValues => {
            let least = context(error, ContextKind::MinValues);
            let got = context(error, ContextKind::ActualNumValues);
            with_help(Problem::usage(format!("`{argument}` takes at least {least} values, got {got}")), None, arguments)
        }
        _ => {
            let rendered = error.render().to_string();
            let first = rendered.lines().next().unwrap_or_default();
            let message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
            with_help(Problem::usage(message), None, arguments)
        }
    }
}

fn unknown_argument(error: &clap::Error, token: &str, arguments: &[OsString]) -> Problem {
    let problem = Problem::usage(format!("unexpected argument `{token}`"));
    if !takes_program_flags(arguments) {
        return with_help(problem, suggestion(error), arguments);
    }
    if token.starts_with(char::is_whitespace) {
        // The shell makes ` --steps` of a backslash that is followed by a space instead of the end of the line.
        return problem.hint(
            "the argument begins with a space: a backslash that continues a line must be its very last character; \
             flags of the program belong after `--`",
        );
    }
    let belongs = if token.starts_with('-') {
        format!("flags of the program belong after `--`: `coord {} ... -- {token} ...`", words(arguments).join(" "))
    } else {
        "arguments of the program belong after `--`".to_owned()
    };
    // A far-fetched guess would hide the likelier reason, which is a flag of the program before the separator.
    match suggestion(error).filter(|flag| common_prefix(flag, token) >= LIKELY_TYPO_PREFIX) {
        Some(flag) => problem.hint(format!("did you mean `{flag}`? {belongs}")),
        None => problem.hint(belongs),
    }
}

/// The two dashes and three letters.
const LIKELY_TYPO_PREFIX: usize = 5;

fn common_prefix(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(left, right)| left == right).count()
}

fn takes_program_flags(arguments: &[OsString]) -> bool {
    matches!(words(arguments).first().map(String::as_str), Some("submit" | "local"))
}

/// The command words at the front: `submit JOB`, `local train`, `storage ls`.
fn words(arguments: &[OsString]) -> Vec<String> {
    let is_word = |argument: &&OsString| !argument.to_string_lossy().starts_with('-');
    arguments.iter().take_while(is_word).take(2).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

fn with_help(problem: Problem, suggestion: Option<String>, arguments: &[OsString]) -> Problem {
    let command = words(arguments).into_iter().next().map(|word| format!(" {word}")).unwrap_or_default();
    match suggestion {
        Some(name) => problem.hint(format!("did you mean `{name}`?")),
        None if matches!(&problem, Problem::Said { message, .. } if message.contains("command")) => {
            problem.hint("`coord --help` lists the commands")
        }
        None => problem.hint(format!("`coord{command} --help` lists what can be given")),
    }
}

fn suggestion(error: &clap::Error) -> Option<String> {
    [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
        .into_iter()
        .map(|kind| context(error, kind))
        .find(|text| !text.is_empty())
        .map(|text| text.split(", ").next().unwrap_or_default().to_owned())
}

fn context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        Some(ContextValue::Number(number)) => number.to_string(),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    }
}
