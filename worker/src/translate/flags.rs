//! The program flags of the translate trainer, as they were typed.
//!
//! `--flag=value` and `--flag value` both work; a bare boolean flag is true, `--noflag` is false. `-` and `_` are the
//! same in a flag's name. A flag given twice takes the last value, as the old program did.

use thiserror::Error;

#[derive(Debug, Error, PartialEq)]
pub enum FlagError {
    #[error("unknown program flag {flag}{}", suggestion.as_ref().map(|name| format!("; did you mean --{name}?")).unwrap_or_default())]
    Unknown { flag: String, suggestion: Option<String> },
    #[error("program flag --{flag} needs a value")]
    NoValue { flag: &'static str },
    #[error("program flag --{flag}: expected {expected}, got {got:?}")]
    BadValue { flag: &'static str, expected: String, got: String },
    #[error("unexpected program argument {got:?}; program flags begin with `--`")]
    Stray { got: String },
    #[error("program argument {position} is not UTF-8: {text:?}")]
    NotText { position: usize, text: String },
}

/// Where all flags are explained.
const TABLE: &str = "`coord local train -- --help` lists the program flags";

impl FlagError {
    /// What the flag is for, and where the others are listed.
    pub fn hint(&self) -> String {
        let named = match self {
            Self::NoValue { flag } | Self::BadValue { flag, .. } => FLAGS.iter().find(|known| known.name == *flag),
            Self::Unknown { .. } | Self::Stray { .. } | Self::NotText { .. } => None,
        };
        named.map_or_else(|| TABLE.to_owned(), |flag| format!("--{}: {}; {TABLE}", flag.name, flag.explained()))
    }
}

/// What a flag takes, and its default.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text(&'static str),
    /// Default, least and most.
    Integer(u64, u64, u64),
    Number(f64),
    Switch,
}

struct Flag {
    name: &'static str,
    kind: Kind,
    help: &'static str,
}

impl Flag {
    /// The help text with the default.
    fn explained(&self) -> String {
        let default = match self.kind {
            Kind::Text(text) => text.to_owned(),
            Kind::Integer(number, ..) => number.to_string(),
            Kind::Number(number) => number.to_string(),
            Kind::Switch => "false".to_owned(),
        };
        if default.is_empty() { self.help.to_owned() } else { format!("{} [{default}]", self.help) }
    }
}

const fn flag(name: &'static str, kind: Kind, help: &'static str) -> Flag {
    Flag { name, kind, help }
}

const ANY: u64 = u64::MAX;
/// Limits far above what anybody trains, so that no product of two of them overflows.
const BATCH_MAX: u64 = 1_000_000;
const SIZE_MAX: u64 = 65_536;
const LAYERS_MAX: u64 = 128;
const VOCABULARY_MAX: u64 = 100_000_000;

/// In the order of the help text: first the old program's own, then ours, then the old behaviours.
const FLAGS: &[Flag] = &[
    flag(
        "learning_rate",
        Kind::Number(0.5),
        "learning rate at the start; on resume the checkpoint's own goes on unless another value is given",
    ),
    flag("learning_rate_decay_factor", Kind::Number(0.99), "multiplier at each decay"),
    flag("max_gradient_norm", Kind::Number(5.0), "gradients are clipped to this global norm"),
    flag("batch_size", Kind::Integer(64, 1, BATCH_MAX), "samples of one step, whatever the number of workers"),
    flag("size", Kind::Integer(1024, 1, SIZE_MAX), "units of each layer, embedding and attention width"),
    flag("num_layers", Kind::Integer(3, 1, LAYERS_MAX), "layers of encoder and decoder"),
    flag("from_vocab_size", Kind::Integer(40000, 5, VOCABULARY_MAX), "source vocabulary, special tokens included"),
    flag("to_vocab_size", Kind::Integer(40000, 5, VOCABULARY_MAX), "target vocabulary, special tokens included"),
    flag("data_dir", Kind::Text(""), "folder of the vocabularies (default: <job dir>/data)"),
    flag("train_dir", Kind::Text(""), "folder of the checkpoints (default: <job dir>/train)"),
    flag("from_train_data", Kind::Text(""), "source side of the training pairs"),
    flag("to_train_data", Kind::Text(""), "target side of the training pairs"),
    flag("from_dev_data", Kind::Text(""), "source side of the development pairs (default: the training file)"),
    flag("to_dev_data", Kind::Text(""), "target side of the development pairs (default: the training file)"),
    flag("max_train_data_size", Kind::Integer(0, 0, ANY), "lines of the training pair that are read; 0 = all"),
    flag("steps_per_checkpoint", Kind::Integer(200, 1, ANY), "steps between progress line, checkpoint and evaluation"),
    flag("decode", Kind::Switch, "answer lines from standard input instead of training"),
    flag("self_test", Kind::Switch, "run five steps of a tiny model and end"),
    flag("use_fp16", Kind::Switch, "refused: training runs in 32 bits"),
    flag("steps", Kind::Integer(0, 0, ANY), "end after this step; 0 = train until cancelled"),
    flag(
        "patience",
        Kind::Integer(0, 0, ANY),
        "end after so many intervals without a better development loss; 0 = off",
    ),
    flag("min_learning_rate", Kind::Number(0.0001), "the decay stops at this rate"),
    flag("seed", Kind::Integer(42, 0, ANY), "fixes initial weights, order of the samples and sampled negatives"),
    flag("eval_pairs", Kind::Integer(256, 0, ANY), "development pairs of each bucket in an evaluation; 0 = all"),
    flag("num_samples", Kind::Integer(512, 0, VOCABULARY_MAX), "negatives of the sampled softmax; 0 = full softmax"),
    flag("encoding", Kind::Text("utf-8"), "of the data files: utf-8, windows-1252 or bytes"),
    flag("resume", Kind::Text("auto"), "auto, or required: refuse to start without a checkpoint"),
    flag(
        "max_bad_steps",
        Kind::Integer(10, 1, ANY),
        "steps in a row with a non-finite loss or gradient before the job fails",
    ),
    flag("keep_checkpoints", Kind::Integer(5, 1, ANY), "newest checkpoints that are kept"),
    flag("dump_run", Kind::Text(""), "folder for initial weights, batches and negatives of the first steps"),
    flag("dump_steps", Kind::Integer(50, 0, ANY), "steps that --dump_run writes"),
    flag("keep_vocabulary", Kind::Switch, "use vocabularies that are there even if they were made from other data"),
    flag("accept_other_bits", Kind::Switch, "resume a checkpoint of another numeric class"),
    flag("old_evaluation", Kind::Switch, "as the old program: one random batch a bucket, sampled loss"),
    flag("attend_to_padding", Kind::Switch, "as the old program: attention sees padding"),
    flag("draw_with_replacement", Kind::Switch, "as the old program: batches drawn at random with replacement"),
];

/// The flags with their values; everything not typed has its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Flags {
    values: Vec<Option<String>>,
}

impl Flags {
    /// `args` is everything after `--`, byte for byte.
    pub fn parse<A: AsRef<[u8]>>(args: &[A]) -> Result<Self, FlagError> {
        let mut values = vec![None; FLAGS.len()];
        let mut position = 0;
        while position < args.len() {
            let text = text(args, position)?;
            position += 1;
            let Some(body) = text.strip_prefix("--").filter(|body| !body.is_empty()) else {
                return Err(FlagError::Stray { got: text.to_owned() });
            };
            let (name, value) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (body, None),
            };
            let name = name.replace('-', "_");
            let (index, negated) = find(&name).ok_or_else(|| unknown(text, &name))?;
            let flag = &FLAGS[index];
            let value = match (flag.kind, value) {
                (Kind::Switch, None) => (!negated).to_string(),
                (Kind::Switch, Some(value)) => (switch(flag.name, value)? != negated).to_string(),
                (_, Some(value)) => value.to_owned(),
                (_, None) if position < args.len() => {
                    position += 1;
                    self::text(args, position - 1)?.to_owned()
                }
                (_, None) => return Err(FlagError::NoValue { flag: flag.name }),
            };
            check(flag, &value)?;
            values[index] = Some(value);
        }
        Ok(Self { values })
    }

    fn value(&self, name: &str) -> (&Flag, Option<&str>) {
        let index = FLAGS.iter().position(|flag| flag.name == name).expect("flag names are constants of this module");
        (&FLAGS[index], self.values[index].as_deref())
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.value(name).1.is_some()
    }

    /// Nothing for an empty value without a default.
    pub fn text(&self, name: &str) -> Option<String> {
        let (flag, value) = self.value(name);
        let default = match flag.kind {
            Kind::Text(default) => default,
            _ => unreachable!("{name} is no text flag"),
        };
        Some(value.unwrap_or(default)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub fn integer(&self, name: &str) -> u64 {
        match self.value(name) {
            (_, Some(value)) => value.parse().expect("checked when parsed"),
            (Flag { kind: Kind::Integer(default, ..), .. }, None) => *default,
            _ => unreachable!("{name} is no integer flag"),
        }
    }

    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            (_, Some(value)) => value.parse().expect("checked when parsed"),
            (Flag { kind: Kind::Number(default), .. }, None) => *default,
            _ => unreachable!("{name} is no number flag"),
        }
    }

    pub fn switch(&self, name: &str) -> bool {
        self.value(name).1 == Some("true")
    }

    /// One line a flag, with its default.
    pub fn help() -> String {
        FLAGS.iter().map(|flag| format!("  --{:<28} {}\n", flag.name, flag.explained())).collect()
    }
}

fn text<A: AsRef<[u8]>>(args: &[A], position: usize) -> Result<&str, FlagError> {
    let bytes = args[position].as_ref();
    std::str::from_utf8(bytes)
        .map_err(|_| FlagError::NotText { position: position + 1, text: String::from_utf8_lossy(bytes).into_owned() })
}

/// Index of a flag, and whether it was written `noflag`.
fn find(name: &str) -> Option<(usize, bool)> {
    if let Some(index) = FLAGS.iter().position(|flag| flag.name == name) {
        return Some((index, false));
    }
    let positive = name.strip_prefix("no")?;
    let index = FLAGS.iter().position(|flag| flag.name == positive && matches!(flag.kind, Kind::Switch))?;
    Some((index, true))
}

fn switch(name: &'static str, value: &str) -> Result<bool, FlagError> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" | "yes" => Ok(true),
        "false" | "f" | "0" | "no" => Ok(false),
        _ => Err(FlagError::BadValue { flag: name, expected: "true or false".to_owned(), got: value.to_owned() }),
    }
}

fn check(flag: &Flag, value: &str) -> Result<(), FlagError> {
    let bad =
        |expected: &str| FlagError::BadValue { flag: flag.name, expected: expected.to_owned(), got: value.to_owned() };
    match flag.kind {
        Kind::Integer(_, least, most) => match value.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(bad(&whole_number(least, most))),
        },
        Kind::Number(_) => match value.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(()),
            _ => Err(bad("a number, 0 or more")),
        },
        Kind::Text(_) | Kind::Switch => Ok(()),
    }
}

fn whole_number(least: u64, most: u64) -> String {
    if most == ANY {
        format!("a whole number, {least} or more")
    } else {
        format!("a whole number from {least} to {most}")
    }
}

fn unknown(text: &str, name: &str) -> FlagError {
    let suggestion = FLAGS
        .iter()
        .map(|flag| (distance(flag.name, name), flag.name))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, name)| name.to_owned());
    let flag = text.split('=').next().unwrap_or(text).to_owned();
    FlagError::Unknown { flag, suggestion }
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let cost = usize::from(left != *right);
            let best = (diagonal + cost).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Flags, FlagError> {
        Flags::parse(args)
    }

    #[test]
    fn every_way_to_write_a_flag_is_read() {
        let flags = parse(&["--size=256", "--num_layers", "2", "--decode", "--noself_test", "--batch-size=8"]).unwrap();
        assert_eq!((flags.integer("size"), flags.integer("num_layers"), flags.integer("batch_size")), (256, 2, 8));
        assert!(flags.switch("decode") && !flags.switch("self_test"));
        assert!(!parse(&["--decode=false"]).unwrap().switch("decode"));
        assert!(parse(&["--nodecode=false"]).unwrap().switch("decode"));
        assert_eq!(parse(&["--train_dir=a=b"]).unwrap().text("train_dir").as_deref(), Some("a=b"));
        assert_eq!(parse(&["--train_dir", "--odd"]).unwrap().text("train_dir").as_deref(), Some("--odd"));
    }

    #[test]
    fn defaults_are_those_of_the_old_program() {
        let flags = parse(&[]).unwrap();
        assert_eq!(flags.number("learning_rate"), 0.5);
        assert_eq!(flags.number("learning_rate_decay_factor"), 0.99);
        assert_eq!(flags.number("max_gradient_norm"), 5.0);
        let integers = ["batch_size", "size", "num_layers", "from_vocab_size", "to_vocab_size", "steps_per_checkpoint"];
        assert_eq!(integers.map(|name| flags.integer(name)), [64, 1024, 3, 40000, 40000, 200]);
    }

    #[test]
    fn a_wrong_flag_is_named_with_what_was_meant() {
        let message = |args: &[&str]| parse(args).unwrap_err().to_string();
        assert_eq!(message(&["--sise=3"]), "unknown program flag --sise; did you mean --size?");
        assert_eq!(message(&["--frobnicate"]), "unknown program flag --frobnicate");
        assert_eq!(message(&["--size"]), "program flag --size needs a value");
        assert_eq!(message(&["--size=-3"]), "program flag --size: expected a whole number from 1 to 65536, got \"-3\"");
        assert_eq!(
            message(&["--steps_per_checkpoint=0"]),
            "program flag --steps_per_checkpoint: expected a whole number, 1 or more, got \"0\""
        );
        assert!(message(&["--num_layers=18446744073709551615"]).contains("from 1 to 128"));
        let hint = |args: &[&str]| parse(args).unwrap_err().hint();
        assert_eq!(
            hint(&["--size=-3"]),
            "--size: units of each layer, embedding and attention width [1024]; \
             `coord local train -- --help` lists the program flags"
        );
        assert_eq!(hint(&["--sise=3"]), "`coord local train -- --help` lists the program flags");
        assert_eq!(message(&["oops"]), "unexpected program argument \"oops\"; program flags begin with `--`");
    }
}
