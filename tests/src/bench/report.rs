//! A figure for people and for programs.

use std::fmt;

use serde_json::{Value, json};

use super::machine;
use super::statistics::Sample;

/// One measured thing beside its limit.
#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    pub unit: &'static str,
    pub value: f64,
    pub limit: f64,
    /// Nothing for a thing that is looked at once.
    pub sample: Option<Sample>,
}

/// The first case is the figure.
#[derive(Debug)]
pub struct Report {
    pub figure: &'static str,
    pub cases: Vec<Case>,
}

impl Case {
    /// At least 1 where the limit is kept.
    fn ratio(&self) -> f64 {
        self.limit / self.value
    }

    fn json(&self) -> Value {
        let of = |figure: fn(&Sample) -> f64| self.sample.as_ref().map(figure);
        json!({
            "name": self.name, "unit": self.unit, "value": self.value, "peer": self.limit, "ratio": self.ratio(),
            "p50": of(Sample::median), "p99": of(|sample| sample.quantile(0.99)), "spread": of(Sample::spread),
            "count": self.sample.as_ref().map(Sample::len),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["CASE", "VALUE", "LIMIT", "RATIO", "P50", "P99", "SPREAD", "COUNT"];
        let [case, rest @ ..] = header;
        write!(formatter, "{case:<34}")?;
        rest.iter().try_for_each(|name| write!(formatter, "{name:>11}"))?;
        writeln!(formatter)?;
        for case in &self.cases {
            let figure = |value: f64| format!("{value:.3} {}", case.unit);
            let of = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
            let sample = case.sample.as_ref();
            let cells = [
                figure(case.value),
                figure(case.limit),
                format!("{:.2}", case.ratio()),
                of(sample.map(|sample| figure(sample.median()))),
                of(sample.map(|sample| figure(sample.quantile(0.99)))),
                of(sample.map(|sample| format!("{:.0} %", 100.0 * sample.spread()))),
                of(sample.map(|sample| sample.len().to_string())),
            ];
            write!(formatter, "{:<34}", case.name)?;
            cells.iter().try_for_each(|cell| write!(formatter, "{cell:>11}"))?;
            writeln!(formatter)?;
        }
        let mut last = self.cases[0].json();
        last["figure"] = self.figure.into();
        last["machine"] = machine::describe().into();
        last["cases"] = self.cases.iter().map(Case::json).collect();
        writeln!(formatter, "{last}")
    }
}
