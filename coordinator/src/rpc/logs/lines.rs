//! Stored log bytes to lines: `<RFC 3339 time, UTC>\t<O|E|P>\t<text>\n`.

use std::collections::BTreeSet;

use coord_proto::v1::{LogLine, LogPosition};

/// A line longer than this is handed on in parts.
const LINE_BYTES_MAX: usize = 128 << 10;

/// Splits `data`, which begins at `begin` of the log. An unfinished last line waits for its end, unless the log has
/// ended or the line is too long to wait for. Returns the lines and the position after them.
pub fn split(task: &str, attempt: u64, begin: u64, data: &[u8], ended: bool) -> (Vec<LogLine>, u64) {
    let mut lines = Vec::new();
    let mut rest = data;
    let mut position = begin;
    while !rest.is_empty() {
        let (line, length) = match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&rest[..end], end + 1),
            None if ended || rest.len() >= LINE_BYTES_MAX => (rest, rest.len()),
            None => break,
        };
        rest = &rest[length..];
        position += length as u64;
        let next = LogPosition { task: task.to_owned(), attempt, position };
        let (at_millis, severity, text) = parse(line);
        let text = String::from_utf8_lossy(text).into_owned();
        let (severity, task) = (severity.to_owned(), task.to_owned());
        lines.push(LogLine { severity, at_millis, task, text, attempt, next: Some(next) });
    }
    (lines, position)
}

/// A line that is not in the stored form (the rest of a cut one) is handed on as it is.
fn parse(line: &[u8]) -> (u64, &'static str, &[u8]) {
    let mut fields = line.splitn(3, |byte| *byte == b'\t');
    if let (Some(time), Some(stream), Some(text)) = (fields.next(), fields.next(), fields.next()) {
        let severity = match stream {
            b"O" | b"P" => Some("INFO"),
            b"E" => Some("ERROR"),
            _ => None,
        };
        let time = std::str::from_utf8(time).ok().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        if let (Some(severity), Some(time)) = (severity, time) {
            return (u64::try_from(time.as_millisecond()).unwrap_or(0), severity, text);
        }
    }
    (0, "INFO", line)
}

/// Lines of several logs by time. Each log keeps its own order, also where its clock went back.
pub fn merge(logs: Vec<Vec<LogLine>>) -> Vec<LogLine> {
    let mut out = Vec::with_capacity(logs.iter().map(Vec::len).sum());
    let mut logs: Vec<_> = logs.into_iter().map(|log| log.into_iter().peekable()).collect();
    let mut heads: BTreeSet<(u64, usize)> =
        logs.iter_mut().enumerate().filter_map(|(index, log)| Some((log.peek()?.at_millis, index))).collect();
    while let Some((_, index)) = heads.pop_first() {
        out.extend(logs[index].next());
        heads.extend(logs[index].peek().map(|line| (line.at_millis, index)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &[u8] =
        b"2026-01-02T03:04:05.678Z\tO\tstep 1\n2026-01-02T03:04:06.000Z\tE\twarning:\ttabs stay\n2026-01-02T03:04:07";

    #[test]
    fn lines_carry_severity_time_and_the_position_after_them() {
        let (lines, position) = split("master-replica-0", 2, 1_000, STORED, false);
        let seen: Vec<_> =
            lines.iter().map(|line| (line.severity.as_str(), line.text.as_str(), line.at_millis)).collect();
        assert_eq!(seen, [("INFO", "step 1", 1_767_323_045_678), ("ERROR", "warning:\ttabs stay", 1_767_323_046_000)]);
        let next = lines[0].next.clone().expect("a position");
        assert_eq!((next.task.as_str(), next.attempt, next.position), ("master-replica-0", 2, 1_034));
        assert_eq!(position, 1_000 + STORED.len() as u64 - 19);
    }

    #[test]
    fn an_unfinished_line_is_handed_on_when_the_log_has_ended() {
        let (lines, position) = split("t", 1, 0, STORED, true);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2].text, "2026-01-02T03:04:07");
        assert_eq!(position, STORED.len() as u64);
    }

    #[test]
    fn reading_on_from_any_line_gives_the_rest() {
        let (all, _) = split("t", 1, 0, STORED, true);
        for (index, line) in all.iter().enumerate() {
            let position = line.next.as_ref().expect("a position").position;
            let (rest, _) = split("t", 1, position, &STORED[position as usize..], true);
            assert_eq!(rest, all[index + 1..]);
        }
    }

    #[test]
    fn logs_are_merged_by_time_and_keep_their_own_order() {
        let log = |task: &str, times: &[u64]| -> Vec<LogLine> {
            times.iter().map(|&at_millis| LogLine { at_millis, task: task.into(), ..LogLine::default() }).collect()
        };
        let merged = merge(vec![log("service", &[1, 2, 9]), log("a", &[3, 7, 5]), Vec::new(), log("b", &[4, 9])]);
        let order: Vec<(&str, u64)> = merged.iter().map(|line| (line.task.as_str(), line.at_millis)).collect();
        let expected =
            [("service", 1), ("service", 2), ("a", 3), ("b", 4), ("a", 7), ("a", 5), ("service", 9), ("b", 9)];
        assert_eq!(order, expected);
    }
}
