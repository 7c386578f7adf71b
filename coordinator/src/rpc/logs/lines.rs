//! Stored log bytes to lines: `<RFC 3339 time, UTC>\t<O|E|P>\t<text>\n`.

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
}
