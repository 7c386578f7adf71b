//! The question before something is removed.

use std::io::{BufRead, IsTerminal};

use super::exit::Problem;
use super::printer::Printer;

/// Asks on the terminal; refuses where there is none.
pub fn confirmed(question: &str, printer: &Printer) -> Result<bool, Problem> {
    if !std::io::stdin().is_terminal() {
        return Err(Problem::usage("this command asks before it removes, and standard input is no terminal")
            .hint("`--yes` removes without asking"));
    }
    printer.prompt(&format!("{question} (y/N) "));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
