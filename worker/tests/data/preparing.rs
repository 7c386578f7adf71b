//! What `prepare` makes and says, and what it refuses before it makes anything.

use crate::support::Folder;
use worker::data::buckets::TRANSLATE_BUCKETS;
use worker::data::encoding::Encoding;
use worker::data::pairs::read_pairs;

/// Pairs whose words are all known.
fn small() -> Folder {
    let folder = Folder::new();
    folder.write("train.a", "Hi you .\nhow are you 12 ?\n");
    folder.write("train.b", "hi\nfine , and you ?\n");
    folder.write("test.a", "how\n\n");
    folder.write("test.b", "fine\nfine fine\n");
    folder
}

#[test]
fn files_are_made_in_the_old_order_with_the_old_names_and_lines() {
    let folder = small();
    let (prepared, said) = folder.prepare(&folder.settings(100));
    assert_eq!(
        said,
        [
            "Creating vocabulary data/vocab100.to from data train.b",
            "Creating vocabulary data/vocab100.from from data train.a",
            "Tokenizing data in train.b",
            "0 of 6 tokens (0.00 %) of train.b are not in the vocabulary",
            "Tokenizing data in train.a",
            "0 of 8 tokens (0.00 %) of train.a are not in the vocabulary",
            "Tokenizing data in test.b",
            "0 of 3 tokens (0.00 %) of test.b are not in the vocabulary",
            "Tokenizing data in test.a",
            "0 of 1 tokens (0.00 %) of test.a are not in the vocabulary",
        ]
    );
    assert_eq!(folder.read("data/vocab100.from"), b"_PAD\n_GO\n_EOS\n_UNK\nyou\nHi\n.\nhow\nare\n00\n?\n");
    assert_eq!(folder.read("data/vocab100.to"), b"_PAD\n_GO\n_EOS\n_UNK\nhi\nfine\n,\nand\nyou\n?\n");
    assert_eq!(folder.read("train.a.ids100"), b"5 4 6\n7 8 4 9 10\n");
    assert_eq!(folder.read("train.b.ids100"), b"4\n5 6 7 8 9\n");
    assert_eq!(folder.read("test.a.ids100"), b"7\n\n");
    assert_eq!(folder.read("test.b.ids100"), b"5\n5 5\n");

    let prepared = prepared.unwrap();
    let (again, said) = folder.prepare(&folder.settings(100));
    assert_eq!(again.unwrap(), prepared);
    assert!(said.iter().all(|line| line.contains("tokens")), "nothing is made twice: {said:?}");
}

#[test]
fn long_work_says_where_it_is() {
    let folder = Folder::new();
    folder.write("train.a", "a\n".repeat(200_001));
    folder.write("train.b", "b\n".repeat(200_001));
    let mut settings = folder.settings(100);
    settings.source.dev = settings.source.train.clone();
    settings.target.dev = settings.target.train.clone();
    let (prepared, said) = folder.prepare(&settings);
    let of = |start: &str| said.iter().filter(|line| line.starts_with(start)).cloned().collect::<Vec<_>>();
    let twice = |word: &str| [1, 2, 1, 2].map(|n| format!("  {word} line {n}00000"));
    assert_eq!(of("  processing"), twice("processing"));
    assert_eq!(of("  tokenizing"), twice("tokenizing"));

    let mut said = Vec::new();
    let pair = prepared.unwrap().train;
    let pairs = read_pairs(&folder.storage, &pair, &TRANSLATE_BUCKETS, 0, &mut |line| said.push(line.to_owned()));
    assert_eq!(pairs.unwrap().sizes(), [200_001, 0, 0, 0]);
    assert_eq!(said, ["  reading data line 100000", "  reading data line 200000"]);
}

#[test]
fn a_bad_byte_anywhere_is_found_before_anything_is_written() {
    let folder = small();
    folder.write("train.a", b"one\ntwo\nIt\x92s late\nfour\nfive\n");
    folder.write("train.b", "1\n2\n3\n4\n5\n");
    let (message, error) = folder.refusal(&folder.settings(100));
    assert_eq!(message, "train.a line 3: byte 0x92 at offset 10 is not valid UTF-8");
    assert!(error.hint().unwrap().contains("`--encoding=bytes`"));

    folder.write("train.a", "one\ntwo\nIt's late\nfour\nfive\n");
    folder.write("test.b", b"fine\nIt\x92s late\n");
    assert_eq!(folder.refusal(&folder.settings(100)).0, "test.b line 2: byte 0x92 at offset 7 is not valid UTF-8");

    let mut long = b"ab ".repeat(23_333);
    long.extend_from_slice(b"\n\x92\nfine\n");
    folder.write("test.b", &long);
    folder.write("test.a", "how\n\n\n");
    assert_eq!(folder.refusal(&folder.settings(100)).0, "test.b line 2: byte 0x92 at offset 70000 is not valid UTF-8");

    let settings = |encoding| {
        let mut settings = folder.settings(100);
        settings.encoding = encoding;
        settings
    };
    folder.prepare(&settings(Encoding::Bytes)).0.unwrap();
}

#[test]
fn unusual_line_ends_count_the_same_on_both_sides() {
    let folder = small();
    folder.write("train.a", "\u{feff}one\r\ntwo \u{2028}\u{85}x\ry\r\nthree\r\n");
    folder.write("train.b", "one\ntwo\nthree");
    let prepared = folder.prepare(&folder.settings(100)).0.unwrap();
    assert_eq!((prepared.train.source.lines, prepared.train.target.lines), (3, 3));
    let expected = "_PAD\n_GO\n_EOS\n_UNK\none\ntwo\n\u{2028}\u{85}x\ny\nthree\n";
    assert_eq!(folder.read("data/vocab100.from"), expected.as_bytes());
    assert_eq!(folder.read("train.a.ids100"), b"4\n5 6 7\n8\n");
}

#[test]
fn a_nul_byte_is_refused_with_its_line() {
    let folder = small();
    let lines: Vec<String> = (1..=50).map(|n| if n == 7 { "a\0b\n".to_owned() } else { format!("w{n}\n") }).collect();
    folder.write("train.a", lines.concat());
    folder.write("train.b", "x\n".repeat(50));
    assert!(folder.refusal(&folder.settings(100)).0.starts_with("train.a line 7: NUL byte at offset 19"));
}

#[test]
fn sides_of_unlike_length_are_refused_with_both_counts() {
    let folder = small();
    folder.write("train.a", "question\n".repeat(1000));
    folder.write("train.b", "answer\n".repeat(998));
    let (message, _) = folder.refusal(&folder.settings(100));
    assert!(message.starts_with("train.a has 1000 lines, train.b has 998; "), "{message}");
}

#[test]
fn a_missing_file_is_named_with_its_flag() {
    let folder = small();
    let mut settings = folder.settings(100);
    settings.target.train.url = folder.path("train.bb");
    assert_eq!(folder.refusal(&settings).0, "--to_train_data: train.bb does not exist");
    assert!(!folder.has("data"));
}

#[test]
fn many_unknown_words_are_counted_and_warned_about() {
    let folder = small();
    let words: String = (0..500).map(|n| format!("{}\n", letters(n))).collect();
    folder.write("train.a", &words);
    folder.write("train.b", "b\n".repeat(500));
    let (_, said) = folder.prepare(&folder.settings(50));
    assert!(said.contains(&"454 of 500 tokens (90.80 %) of train.a are not in the vocabulary".to_owned()), "{said:?}");
    let warning = "warning: more than 10 % of the tokens of train.a are unknown; a larger vocabulary size helps";
    assert!(said.contains(&warning.to_owned()), "{said:?}");
    assert!(!said.iter().any(|line| line.starts_with("warning") && line.contains("train.b")));
}

/// A word of letters alone, since all digits count as one.
fn letters(n: u32) -> String {
    [n / 26 / 26, n / 26 % 26, n % 26].map(|digit| char::from(b'a' + digit as u8)).iter().collect()
}

#[test]
fn a_vocabulary_without_room_for_words_is_refused_with_its_flag() {
    let folder = small();
    let refused = folder.refusal(&folder.settings(4)).0;
    assert_eq!(refused, "--from_vocab_size must be at least 5 (4 control symbols and a word), got 4");
}

#[test]
fn data_larger_than_the_memory_is_refused_before_it_is_read() {
    let folder = small();
    let mut settings = folder.settings(100);
    settings.memory_limit = Some(50);
    let expected = "preparing the data takes at least 66 B of memory, 50 B are available";
    assert_eq!(folder.refusal(&settings).0, expected);
    settings.memory_limit = Some(66);
    folder.prepare(&settings).0.unwrap();
}

#[test]
fn a_typed_control_symbol_is_an_unknown_word_and_no_entry() {
    let folder = small();
    folder.write("train.b", "stop _EOS here\n_PAD _GO\n");
    let prepared = folder.prepare(&folder.settings(100)).0.unwrap();
    assert_eq!(folder.read("data/vocab100.to"), b"_PAD\n_GO\n_EOS\n_UNK\nstop\nhere\n");
    assert_eq!(folder.read("train.b.ids100"), b"4 3 5\n3 3\n");
    assert_eq!(prepared.train.target.unknown, 3);
}

#[test]
fn pairs_too_long_for_every_bucket_are_counted_and_a_line_limit_counts_lines() {
    let folder = small();
    folder.write("train.a", ["a ".repeat(40), "a".into(), "a ".repeat(39), String::new(), "a".into()].join("\n"));
    folder.write("train.b", ["b".to_owned(), "b ".repeat(49), "b ".repeat(48), "b".into(), "b".into()].join("\n"));
    let pair = folder.prepare(&folder.settings(100)).0.unwrap().train;
    let mut said = Vec::new();
    let mut read = |limit| {
        read_pairs(&folder.storage, &pair, &TRANSLATE_BUCKETS, limit, &mut |line| said.push(line.to_owned())).unwrap()
    };
    let pairs = read(0);
    assert_eq!((pairs.sizes(), pairs.lines_read, pairs.dropped), (vec![2, 0, 0, 1], 5, 2));
    assert_eq!((pairs.buckets[0].line(0), pairs.buckets[0].source(0).len()), (3, 0));
    let limited = read(4);
    assert_eq!((limited.sizes(), limited.lines_read), (vec![1, 0, 0, 1], 4));
    let none = read(2).for_training(&pair).unwrap_err();
    assert!(none.to_string().starts_with("no training pair fits a bucket: 2 lines read"), "{none}");
    assert_eq!(none.hint().unwrap(), "the largest bucket takes 39 source and 48 target tokens");
    assert!(said[0].starts_with("2 of 5 pairs of ") && said[0].ends_with("too long for every bucket and left out"));
}

#[test]
fn files_without_a_usable_pair_are_refused_before_anything_is_written() {
    let folder = small();
    folder.write("train.a", "");
    folder.write("train.b", "");
    assert_eq!(folder.refusal(&folder.settings(100)).0, "train.a and train.b hold no lines");
    folder.write("train.a", " \n\n");
    folder.write("train.b", "\n\t\n");
    let text = folder.refusal(&folder.settings(100)).0;
    assert_eq!(text, "train.a and train.b hold no words: every line is blank");
    folder.write("train.a", "a ".repeat(40));
    folder.write("train.b", "b");
    let (text, error) = folder.refusal(&folder.settings(100));
    assert_eq!(text, "no training pair fits a bucket: 1 lines read of train.a and train.b, all too long");
    assert_eq!(error.hint().unwrap(), "the largest bucket takes 39 source and 48 target tokens");
}
