//! `coord logs`: prints the log of a job, and follows it until the job has ended.

use clap::Args;
use coord_proto::v1;
use jiff::tz::TimeZone;

use super::exit::{Exit, Problem};
use super::log_reader::{End, LogReader};
use super::printer::{Output, Printer};
use super::session::Session;
use super::{interrupt, names, shapes, text};

#[derive(Debug, Args)]
pub struct LogsFlags {
    /// Job whose log is printed
    pub job: String,
    /// Follow the log until the job has ended, and exit by how it ended
    #[arg(long, short)]
    pub follow: bool,
    /// Only this replica: a rank, a replica name, or `service` for the platform's own lines
    #[arg(long, value_name = "R")]
    pub replica: Option<String>,
}

pub async fn run(flags: LogsFlags, session: &mut Session) -> Result<Exit, Problem> {
    let job = names::job(&flags.job)?;
    let task = flags.replica.as_deref().map(names::task).transpose()?.unwrap_or_default();
    if flags.follow { follow(&job, task, session).await } else { print_once(&job, task, session).await }
}

async fn print_once(job: &str, task: String, session: &mut Session) -> Result<Exit, Problem> {
    print(LogReader::new(job, task, false), session).await?;
    Ok(Exit::Done)
}

/// Prints lines until the job has ended.
pub async fn follow(job: &str, task: String, session: &mut Session) -> Result<Exit, Problem> {
    let printer = session.printer;
    let end = tokio::select! {
        end = print(LogReader::new(job, task, true), session) => end?,
        () = interrupt::requested() => {
            printer.talk(&interrupt::goes_on(&[job.to_owned()], &format!("coord logs {job} -f")));
            return Ok(Exit::Interrupted);
        }
    };
    Ok(Exit::of_job(end.phase, &end.ended_by).unwrap_or(Exit::Failed))
}

async fn print(mut reader: LogReader, session: &mut Session) -> Result<End, Problem> {
    let Session { client, printer, zone } = session;
    reader
        .read(
            client,
            |line| match printer.output() {
                Output::Json => printer.json_line(&shapes::log_line(line)),
                Output::Table | Output::Quiet => printer.bytes(rows(line, zone).as_bytes()),
            },
            |remark| remark_on(printer, remark),
        )
        .await
}

fn remark_on(printer: &Printer, remark: &str) {
    printer.talk(&format!("warning: {remark}"));
}

/// The columns of the log: severity, time, task, an empty trial, message; a message of several lines makes several rows.
fn rows(line: &v1::LogLine, zone: &TimeZone) -> String {
    let time = text::time(line.at_millis, zone);
    let prefix = format!("{}\t{time}\t{}\t\t", line.severity, line.task);
    let mut rows = String::new();
    for message in line.text.split('\n') {
        rows.push_str(&prefix);
        rows.push_str(message);
        rows.push('\n');
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_has_the_five_columns_that_scripts_know() {
        let zone = TimeZone::fixed(jiff::tz::offset(-8));
        let mut line = v1::LogLine {
            severity: "INFO".into(),
            at_millis: 1_482_641_364_999,
            task: "master-replica-0".into(),
            text: "Creating 3 layers of 1024 units.".into(),
            ..v1::LogLine::default()
        };
        assert_eq!(
            rows(&line, &zone),
            "INFO\t2016-12-24 20:49:24 -0800\tmaster-replica-0\t\tCreating 3 layers of 1024 units.\n"
        );
        line.text = "a\n\nb".into();
        let messages: Vec<String> =
            rows(&line, &zone).lines().map(|row| row.rsplit('\t').next().unwrap_or_default().to_owned()).collect();
        assert_eq!(messages, ["a", "", "b"]);
    }
}
