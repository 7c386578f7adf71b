//! `coord serve`: runs a coordinator node until SIGTERM or Ctrl-C.

use super::exit::{Exit, Problem};
use super::names;
use crate::{ServeFlags, ServeSettings};

pub fn run(flags: ServeFlags) -> Result<Exit, Problem> {
    let settings =
        ServeSettings::resolve(flags, |name| std::env::var(name).ok()).map_err(|error| names::coded(&error))?;
    coord_io::telemetry::init("info");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(crate::serve(settings)).map_err(|error| Problem::usage(format!("{error:#}")))?;
    Ok(Exit::Done)
}
