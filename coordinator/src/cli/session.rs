//! What every command that talks to the coordinator works with.

use jiff::tz::TimeZone;

use super::args::CommonFlags;
use super::call_error::CallError;
use super::client::Client;
use super::exit::Problem;
use super::printer::Printer;

pub struct Session {
    pub client: Client,
    pub printer: Printer,
    pub zone: TimeZone,
}

impl Session {
    pub fn open(flags: &CommonFlags) -> Result<Self, Problem> {
        let addresses = flags.addresses().map_err(|error| Problem::usage(format!("bad `--address`: {error}")))?;
        let printer = Printer::new(flags.output);
        let mut client = Client::new(addresses);
        client.tell_of_outages(move |text| printer.talk(text));
        Ok(Self { client, printer, zone: TimeZone::system() })
    }

    /// The problem of a failed call: `cannot list jobs: ...`.
    pub fn problem(&self, doing: &str, error: CallError) -> Problem {
        Problem::from(error).context(&format!("cannot {doing}"))
    }
}
