//! The binary `coord`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coord_io::crypto::install();
    coordinator::cli::main(std::env::args_os())
}
