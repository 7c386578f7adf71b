//! Standard output is data, standard error is talk; which of both a command writes depends on `--output`.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use super::exit::Problem;

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Output {
    /// For people: aligned columns.
    #[default]
    Table,
    /// For programs: one JSON value, or one a line where a command streams.
    Json,
    /// For shell scripts: only the essential word, no talk.
    Quiet,
}

impl Output {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Quiet => "quiet",
        }
    }
}

/// Writes to the two standard streams.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    output: Output,
}

impl Printer {
    pub fn new(output: Output) -> Self {
        Self { output }
    }

    pub fn output(&self) -> Output {
        self.output
    }

    /// A line of data. Flushed at once: somebody may follow it through a pipe.
    pub fn line(&self, text: &str) -> Result<(), Problem> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    /// Data exactly as it is.
    pub fn bytes(&self, bytes: &[u8]) -> Result<(), Problem> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// One JSON value over several lines.
    pub fn json(&self, value: &Value) -> Result<(), Problem> {
        self.line(&format!("{value:#}"))
    }

    /// One JSON value on one line, for commands that stream.
    pub fn json_line(&self, value: &Value) -> Result<(), Problem> {
        self.line(&value.to_string())
    }

    pub fn table(&self, table: &Table) -> Result<(), Problem> {
        self.bytes(table.render().as_bytes())
    }

    /// A remark for people. A closed standard error is nobody's problem.
    pub fn talk(&self, text: &str) {
        if self.output != Output::Quiet {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }

    /// A remark without line end: the prompt of a dialogue.
    pub fn prompt(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{text}");
        let _ = stderr.flush();
    }

    /// True if a person watches standard error, so that a moving bar makes sense.
    pub fn moving_bar(&self) -> bool {
        self.output == Output::Table && std::io::stderr().is_terminal()
    }
}

/// Columns aligned with two spaces between them. The last column is never padded.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    indent: usize,
}

impl Table {
    pub fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()], indent: 0 }
    }

    /// A table without header, for `name  value` pairs.
    pub fn plain() -> Self {
        Self::default()
    }

    pub fn indented(mut self, columns: usize) -> Self {
        self.indent = columns;
        self
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (cell, &column_width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(column_width - width(cell) + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_carry_no_trailing_space() {
        let mut table = Table::new(&["JOB", "STATE", "STEP"]);
        table.row(["dialogs_1", "RUNNING", "120/300"]);
        table.row(["x", "QUEUED", ""]);
        assert_eq!(table.render(), "JOB        STATE    STEP\ndialogs_1  RUNNING  120/300\nx          QUEUED\n");
    }
}
