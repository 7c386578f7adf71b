//! Faults in the user's files: refused before the first step, with the place of the fault, and nothing half-made left.

use coord_tests::local::{Ended, Place};

const QUESTIONS: &str = "how are you\nwho is there\nis it late\nwhat now\nwhere to\n";
const ANSWERS: &str = "fine\nme\nnot yet\nnothing\nhome\n";

fn place(questions: &[u8], answers: &[u8]) -> Place {
    let place = Place::empty().flags("--from_vocab_size=60 --to_vocab_size=60");
    place.write("train.a", questions);
    place.write("train.b", answers);
    place.write("test.a", QUESTIONS);
    place.write("test.b", ANSWERS);
    place
}

/// Refused with exit status 1, and nothing made that a later start could pick up.
#[track_caller]
fn refused(place: &Place, ended: &Ended, message: &str) {
    let error = ended.bad(1);
    assert!(error.contains(message), "{error}");
    assert!(!ended.out.contains("global step"), "{}", ended.out);
    let made: Vec<String> = place.names(".").into_iter().filter(|name| name.contains("ids")).collect();
    assert_eq!((made, place.names("job/data")), (Vec::new(), Vec::new()));
}

#[test]
fn a_bad_byte_is_named_with_file_line_offset_and_the_way_out() {
    let bad = b"how are you\nwho is there\nIt\x92s late\nwhat now\nwhere to\n";
    let in_questions = place(bad, ANSWERS.as_bytes());
    let ended = in_questions.train("--job-dir job", "--steps=5");
    refused(&in_questions, &ended, "train.a line 3: byte 0x92 at offset 27 is not valid UTF-8");
    assert!(ended.err.contains("--encoding=windows-1252"), "{}", ended.err);

    let in_dev = place(QUESTIONS.as_bytes(), ANSWERS.as_bytes());
    in_dev.write("test.b", bad);
    let ended = in_dev.train("--workers 2 --job-dir job", "--steps=5");
    refused(&in_dev, &ended, "test.b line 3: byte 0x92 at offset 27");

    let mut long = b"so\n".repeat(23_333);
    long.extend_from_slice(b"x\x92\n");
    let far = place(&long, &b"so\n".repeat(23_334));
    let ended = far.train("--job-dir job", "--steps=5");
    refused(&far, &ended, "train.a line 23334: byte 0x92 at offset 70000");

    for encoding in ["windows-1252", "bytes"] {
        in_questions.train("--job-dir job", &format!("--steps=5 --encoding={encoding}")).good();
        std::fs::remove_dir_all(in_questions.file("job")).unwrap();
    }
}

#[test]
fn only_line_feeds_end_lines_and_marks_are_no_text() {
    let odd = "\u{feff}how are\u{2028}you \u{85}\rnow\r\nwho is\u{a0}there\r\nis it late";
    let odd = place(odd.as_bytes(), b"fine\nme\nnot yet\n");
    let first = odd.train("--job-dir job", "--steps=5").good();
    let vocabulary = odd.read("job/data/vocab60.from");
    assert!(!vocabulary.contains('\u{feff}') && vocabulary.lines().any(|word| word == "how"), "{vocabulary:?}");
    assert_eq!(odd.read("train.a.ids60").lines().count(), 3);

    // The same vocabulary, read back from its file, gives the same ids and so the same training.
    let ids = odd.read("train.a.ids60");
    for name in odd.names(".").iter().filter(|name| name.contains(".ids")) {
        std::fs::remove_file(odd.file(name)).unwrap();
    }
    let digest = odd.digest("job");
    std::fs::remove_dir_all(odd.file("job/train")).unwrap();
    let second = odd.train("--job-dir job", "--steps=5").good();
    assert!(first.contains("Creating vocabulary") && !second.contains("Creating vocabulary"), "{second}");
    assert_eq!((odd.read("train.a.ids60"), odd.digest("job")), (ids, digest));
}

#[test]
fn a_nul_byte_is_refused_with_its_line() {
    let questions: String =
        (1..=50).map(|line| format!("line {line}{}\n", if line == 7 { "\0" } else { "" })).collect();
    let nul = place(questions.as_bytes(), "so\n".repeat(50).as_bytes());
    let ended = nul.train("--job-dir job", "--steps=5");
    refused(&nul, &ended, "train.a line 7: NUL byte at offset");
}

#[test]
fn unequal_line_counts_are_refused_with_both_numbers() {
    let unequal = place("so\n".repeat(1000).as_bytes(), "so\n".repeat(998).as_bytes());
    let ended = unequal.train("--workers 2 --job-dir job", "--steps=5");
    refused(&unequal, &ended, "train.a has 1000 lines, train.b has 998");
}

#[test]
fn a_misspelt_file_is_named_with_its_flag_and_nothing_is_made() {
    let good = place(QUESTIONS.as_bytes(), ANSWERS.as_bytes());
    let ended = good.train("--workers 3 --job-dir job", "--steps=5 --to_train_data=trian.b");
    refused(&good, &ended, "--to_train_data: trian.b does not exist");
    assert_eq!(good.names("."), ["test.a", "test.b", "train.a", "train.b"]);
}

#[test]
fn vocabularies_with_faults_are_refused_with_their_lines() {
    let base = "_PAD\n_GO\n_EOS\n_UNK\n";
    let cases = [
        (format!("{base}hello\nhow\nare\nyou\nhello\n"), "vocab60.from line 9: hello stands on line 5 already"),
        ("how\nare\nyou\n".to_owned(), "vocab60.from line 1: expected _PAD, got how"),
        (format!("{base}{base}how\n"), "vocab60.from line 5: _PAD stands on line 1 already"),
    ];
    for (contents, message) in cases {
        let good = place(QUESTIONS.as_bytes(), ANSWERS.as_bytes());
        std::fs::create_dir_all(good.file("job/data")).unwrap();
        good.write("job/data/vocab60.from", contents);
        let ended = good.train("--job-dir job", "--steps=5");
        assert!(ended.bad(1).contains(message), "{}", ended.err);
        assert_eq!(good.names("job/data"), ["vocab60.from"]);
    }
}

#[test]
fn a_word_typed_like_a_control_symbol_is_data() {
    let typed = place(b"how are _EOS you\nwho is there\nis it late\n", b"fine _PAD\nme\nnot _GO yet\n");
    typed.train("--job-dir job", "--steps=5").good();
    for side in ["from", "to"] {
        let vocabulary = typed.read(&format!("job/data/vocab60.{side}"));
        assert_eq!(vocabulary.lines().filter(|word| word.starts_with('_')).count(), 4, "{vocabulary}");
    }
    // An unknown word (3), never the symbol itself (2).
    assert_eq!(typed.read("train.a.ids60").lines().next().unwrap().split(' ').nth(2), Some("3"));
}

#[test]
fn unknown_words_are_counted_for_each_file_and_steps_for_each_epoch() {
    // Letters only: digits are all one digit to the vocabulary.
    let word =
        |number: usize| -> String { format!("{number:03}").bytes().map(|digit| char::from(digit + 49)).collect() };
    let line = |line: usize| -> String { (line * 5..line * 5 + 5).map(word).collect::<Vec<_>>().join(" ") + "\n" };
    let text: String = (0..100).map(line).collect();
    let rare = place(text.as_bytes(), text.as_bytes()).flags("--from_vocab_size=54 --to_vocab_size=54");
    let out = rare.train("--job-dir job", "--steps=20").good();
    for file in ["train.a", "train.b", "test.a", "test.b"] {
        assert!(out.lines().any(|line| line.contains(&format!("of {file} are not in the vocabulary"))), "{out}");
    }
    assert!(out.contains("warning: more than 10 % of the tokens of train.a are unknown"), "{out}");
    assert!(out.lines().any(|line| line.ends_with(" steps an epoch")), "{out}");
}

#[test]
fn files_without_lines_folders_and_pipes_are_refused_by_name() {
    let empty = place(b"", b"");
    let ended = empty.train("--job-dir job", "--steps=5");
    refused(&empty, &ended, "train.a and ");
    assert!(ended.err.contains("train.b hold no lines"), "{}", ended.err);

    let odd = place(QUESTIONS.as_bytes(), ANSWERS.as_bytes());
    std::fs::create_dir(odd.file("folder")).unwrap();
    let ended = odd.train("--job-dir job", "--steps=5 --to_train_data=folder");
    refused(&odd, &ended, "folder: expected a file, got a folder");
    assert!(std::process::Command::new("mkfifo").arg(odd.file("pipe")).status().unwrap().success());
    let ended = odd.train("--job-dir job", "--steps=5 --from_train_data=pipe");
    refused(&odd, &ended, "pipe: expected a file, got a pipe, socket or device");
}

/// SEQ-12.
#[test]
fn a_model_larger_than_the_memory_is_refused_with_its_sizes_before_anything_is_written() {
    let place = place(QUESTIONS.as_bytes(), ANSWERS.as_bytes());
    let sizes = "--from_vocab_size=200000 --to_vocab_size=200000 --size=1024 --batch_size=64 --steps=5";
    let ended = place.train_within("--as=1073741824", "--job-dir job", sizes);
    refused(&place, &ended, "training needs at least 8.");
    for word in ["vocab_size 200000", "size 1024", "batch_size 64", "largest tensor projection.weight [200000, 1024]"] {
        assert!(ended.err.contains(word), "{word}: {}", ended.err);
    }
    assert!(ended.err.contains("workers with more memory"), "{}", ended.err);
}
