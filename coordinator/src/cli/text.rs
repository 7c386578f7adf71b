//! How times, durations and figures are written for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Form of the log columns: local time with its offset.
const WITH_OFFSET: &str = "%Y-%m-%d %H:%M:%S %z";

/// Form of all tables: RFC 3339 in UTC, to the second.
const IN_TABLES: &str = "%Y-%m-%dT%H:%M:%SZ";
/// Hex digits of a digest in tables; JSON and `coord checkpoints digest` have all of them.
const DIGEST_SHOWN: usize = 12;

/// A time in a table. An empty string for 0, which stands for "not yet".
pub fn stamp(millis: u64) -> String {
    if millis == 0 {
        return String::new();
    }
    match i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok()) {
        Some(timestamp) => timestamp.strftime(IN_TABLES).to_string(),
        None => format!("{millis} ms"),
    }
}

/// The same with the time since then: `2026-12-24T20:33:32Z (3 min 20 s ago)`. A clock ahead of ours counts as ours.
pub fn stamp_and_age(millis: u64, now: Timestamp) -> String {
    let now = u64::try_from(now.as_millisecond()).unwrap_or(0);
    match stamp(millis) {
        stamp if stamp.is_empty() => stamp,
        stamp => format!("{stamp} ({} ago)", duration(now.saturating_sub(millis))),
    }
}

/// A digest as tables show it.
pub fn short_digest(digest: &str) -> String {
    digest.chars().take(DIGEST_SHOWN).collect()
}

/// Local time with offset, to the second, as logs have it. An empty string for 0, which stands for "not yet".
pub fn time(millis: u64, zone: &TimeZone) -> String {
    if millis == 0 {
        return String::new();
    }
    match i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok()) {
        Some(timestamp) => timestamp.to_zoned_datetime(zone.clone()).strftime(WITH_OFFSET).to_string(),
        None => format!("{millis} ms"),
    }
}

/// The suffix that `--unique` adds: `_20161224_203332`, local time.
pub fn unique_suffix(now: Timestamp, zone: &TimeZone) -> String {
    now.to_zoned_datetime(zone.clone()).strftime("_%Y%m%d_%H%M%S").to_string()
}

/// A duration in the two largest units that say something: `340 ms`, `12 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if millis < 1000 {
        format!("{millis} ms")
    } else if millis < 10_000 {
        format!("{}.{} s", seconds, millis % 1000 / 100)
    } else if minutes == 0 {
        format!("{seconds} s")
    } else if hours == 0 {
        format!("{minutes} min {:02} s", seconds % 60)
    } else if days == 0 {
        format!("{hours} h {:02} min", minutes % 60)
    } else {
        format!("{days} d {} h", hours % 24)
    }
}

/// Time left until the last step; nothing without a step limit or before a step was timed.
pub fn eta_millis(step: u64, steps: u64, seconds_per_step: f64) -> Option<u64> {
    let left = steps.checked_sub(step).filter(|_| steps > 0)?;
    let millis = left as f64 * seconds_per_step * 1000.0;
    // A step that took no measurable time, or a figure that is no number, says nothing about the rest.
    (seconds_per_step > 0.0 && millis.is_finite()).then_some(millis as u64)
}

/// A count with thousands separated: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Program flags as a shell would take them again; bytes that are no text are shown as `\xNN`.
pub fn shell_words(words: &[impl AsRef<[u8]>]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word.as_ref())).collect();
    quoted.join(" ")
}

fn shell_word(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=./:,@%+".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(plain) => text.to_owned(),
        Ok(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => format!("$'{}'", word.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_the_offset_of_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(-8));
        assert_eq!(time(1_482_641_364_000, &zone), "2016-12-24 20:49:24 -0800");
        assert_eq!(time(0, &zone), "");
    }

    #[test]
    fn tables_show_times_in_utc_and_how_long_ago_they_were() {
        assert_eq!(stamp(1_482_641_364_999), "2016-12-25T04:49:24Z");
        assert_eq!(stamp(0), "");
        let at = |seconds| Timestamp::from_second(seconds).expect("a valid time");
        assert_eq!(stamp_and_age(1_482_641_364_000, at(1_482_641_376)), "2016-12-25T04:49:24Z (12 s ago)");
        assert_eq!(stamp_and_age(1_482_641_364_000, at(1_482_641_300)), "2016-12-25T04:49:24Z (0 ms ago)");
        assert_eq!(stamp_and_age(0, at(12)), "");
    }

    #[test]
    fn the_unique_suffix_is_made_of_characters_that_a_job_id_may_hold() {
        let now = Timestamp::from_second(1_482_640_412).expect("a valid time");
        assert_eq!(unique_suffix(now, &TimeZone::fixed(jiff::tz::offset(-8))), "_20161224_203332");
    }

    #[test]
    fn durations_show_their_two_largest_units() {
        let table = [
            (340, "340 ms"),
            (1_250, "1.2 s"),
            (12_900, "12 s"),
            (200_000, "3 min 20 s"),
            (7_500_000, "2 h 05 min"),
            (273_600_000, "3 d 4 h"),
        ];
        for (millis, expected) in table {
            assert_eq!(duration(millis), expected);
        }
    }

    #[test]
    fn the_time_left_needs_a_limit_and_a_timed_step() {
        assert_eq!(eta_millis(100, 300, 0.25), Some(50_000));
        assert_eq!(eta_millis(300, 300, 0.25), Some(0));
        assert_eq!(eta_millis(100, 0, 0.25), None);
        assert_eq!(eta_millis(100, 300, 0.0), None);
        assert_eq!(eta_millis(100, 300, f64::NAN), None);
        assert_eq!(eta_millis(100, 300, f64::INFINITY), None);
        assert_eq!(eta_millis(301, 300, 0.25), None);
    }

    #[test]
    fn counts_and_sizes_are_grouped() {
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn program_flags_can_be_pasted_into_a_shell() {
        let words: [&[u8]; 5] = [b"--steps=10", b"", b"two words", b"it's", b"\xff"];
        assert_eq!(shell_words(&words), r"--steps=10 '' 'two words' 'it'\''s' $'\xff'");
    }
}
