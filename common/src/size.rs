//! Amounts of bytes as people read them.

/// In the unit that leaves one to four digits: `17 B`, `1.5 KiB`, `3.6 MiB`.
pub fn bytes(value: u64) -> String {
    let mut amount = value as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return if unit == "B" { format!("{value} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_that_leaves_few_digits() {
        assert_eq!([bytes(17), bytes(1_536), bytes(3_774_507)], ["17 B", "1.5 KiB", "3.6 MiB"]);
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
