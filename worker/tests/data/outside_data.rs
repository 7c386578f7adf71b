//! Published and computed figures on corpora that may not travel with the source.
//!
//! They are looked for in the folder that `COORD_TEST_DATA` names, by default `shared/data` beside the workspace; where
//! a corpus is absent its test says so and checks nothing. `excerpt.rs` checks the same code on shipped data.

use crate::support::Folder;
use std::path::{Path, PathBuf};
use worker::data::buckets::{BucketShape, TRANSLATE_BUCKETS};
use worker::data::counts::TokenCounts;
use worker::data::dialogs::{Conversion, LineNumbers, Pair, convert};
use worker::data::encoding::Encoding;
use worker::data::lines::Text;
use worker::data::pairs::read_pairs;
use worker::data::tokenizer::tokens;
use worker::data::vocabulary::Vocabulary;

fn file(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let path = std::env::var_os("COORD_TEST_DATA").map_or(root, PathBuf::from).join(name);
    if !path.exists() {
        eprintln!("skipped for lack of data: {} does not exist; COORD_TEST_DATA names its folder", path.display());
        return None;
    }
    Some(path)
}

fn text(name: &str, encoding: Encoding) -> Option<Text> {
    let path = file(name)?;
    Some(Text::check(name, std::fs::read(path).unwrap().into(), encoding).unwrap())
}

fn counts(text: &Text) -> TokenCounts {
    TokenCounts::of(text, &mut |_| {})
}

/// Pairs of each bucket, and those that fit none. An unknown word is a token like any other, so no ids are needed.
fn bucket_sizes(source: &Text, target: &Text) -> ([usize; 4], usize) {
    let (mut sizes, mut dropped) = ([0; 4], 0);
    for (source, target) in source.lines().zip(target.lines()) {
        match BucketShape::first_fitting(&TRANSLATE_BUCKETS, tokens(source).count(), tokens(target).count() + 1) {
            Some(bucket) => sizes[bucket] += 1,
            None => dropped += 1,
        }
    }
    (sizes, dropped)
}

#[test]
fn multi30k_english_gives_the_published_vocabulary_and_ids() {
    let Some(english) = text("multi30k/train.en", Encoding::Utf8) else { return };
    let counts = counts(&english);
    assert_eq!((counts.types(), counts.total()), (11_181, 378_011));
    let whole = Vocabulary::parse("v", &counts.vocabulary_file(40_000), 40_000).unwrap();
    assert_eq!(whole.len(), 11_185);
    let vocabulary = Vocabulary::parse("v", &counts.vocabulary_file(5000), 5000).unwrap();
    let first: Vec<&[u8]> = vocabulary.tokens().skip(4).take(12).collect();
    assert_eq!(first, ["a", ".", "A", "in", "the", "on", "is", "and", "man", "of", "with", ","].map(str::as_bytes));
    assert_eq!(vocabulary.token(4999), Some(&b"jackhammers"[..]));
    assert_eq!(counts.count_at(4999 - 4), Some(2));
    let ids = |line: &[u8]| {
        let mut ids = Vec::new();
        vocabulary.look_up(line, &mut ids);
        ids
    };
    let with_digits = ids(b"Two young, White males are outside near 24 bushes.");
    assert_eq!(with_digits, [19, 25, 15, 1162, 803, 17, 56, 83, 587, 1325, 5]);
    assert_eq!(ids(english.lines().next().unwrap()), [19, 25, 15, 1162, 803, 17, 56, 83, 332, 1325, 5]);
    let unknown: usize = english.lines().map(|line| ids(line).into_iter().filter(|id| *id == 3).count()).sum();
    assert_eq!(unknown, 7397);
}

#[test]
fn multi30k_german_and_french_give_the_published_counts() {
    let (Some(english), Some(german), Some(french)) = (
        text("multi30k/train.en", Encoding::Utf8),
        text("multi30k/train.de", Encoding::Utf8),
        text("multi30k/train.fr", Encoding::Utf8),
    ) else {
        return;
    };
    let of_german = counts(&german);
    assert_eq!((of_german.types(), of_german.total()), (19_249, 360_369));
    let vocabulary = Vocabulary::parse("v", &of_german.vocabulary_file(5000), 5000).unwrap();
    let first: Vec<&[u8]> = vocabulary.tokens().skip(4).take(8).collect();
    assert_eq!(first, [".", "Ein", "einem", "in", ",", "und", "mit", "auf"].map(str::as_bytes));
    let of_french = counts(&french);
    assert_eq!((of_french.types(), of_french.total()), (11_497, 424_744));
    assert_eq!(bucket_sizes(&english, &german), ([8, 5209, 21_717, 2065], 1));
    assert_eq!(bucket_sizes(&english, &french), ([8, 5004, 21_479, 2508], 1));
}

#[test]
fn multi30k_goes_from_files_to_buckets() {
    let names = ["multi30k/train.en", "multi30k/train.de", "multi30k/val.en", "multi30k/val.de"].map(file);
    let [Some(train_a), Some(train_b), Some(test_a), Some(test_b)] = names else { return };
    let folder = Folder::new();
    for (from, to) in [(train_a, "train.a"), (train_b, "train.b"), (test_a, "test.a"), (test_b, "test.b")] {
        folder.write(to, std::fs::read(from).unwrap());
    }
    let (prepared, said) = folder.prepare(&folder.settings(5000));
    let prepared = prepared.unwrap();
    let line = "7397 of 378011 tokens (1.96 %) of train.a are not in the vocabulary";
    assert!(said.contains(&line.to_owned()), "{said:?}");
    let pairs = read_pairs(&folder.storage, &prepared.train, &TRANSLATE_BUCKETS, 0, &mut |_| {}).unwrap();
    assert_eq!((pairs.sizes(), pairs.dropped), (vec![8, 5209, 21_717, 2065], 1));
}

#[test]
fn cornell_pairs_give_the_published_counts_although_they_are_not_utf_8() {
    let folder = "cornell-movie-dialogs-excerpt";
    let Some(path) = file(&format!("{folder}/pairs.a")) else { return };
    assert!(Text::check("pairs.a", std::fs::read(path).unwrap().into(), Encoding::Utf8).is_err());
    let (Some(a), Some(b)) =
        (text(&format!("{folder}/pairs.a"), Encoding::Bytes), text(&format!("{folder}/pairs.b"), Encoding::Bytes))
    else {
        return;
    };
    assert_eq!((a.line_count(), b.line_count()), (26_038, 26_038));
    assert_eq!((counts(&a).types(), counts(&a).total()), (17_770, 378_979));
    assert_eq!((counts(&b).types(), counts(&b).total()), (17_678, 377_061));
    assert_eq!(bucket_sizes(&a, &b), ([1967, 6290, 8678, 6861], 2242));
}

#[test]
fn cornell_lines_give_the_published_pairs() {
    let Some(text) = text("cornell-movie-dialogs-excerpt/movie_lines.txt", Encoding::Bytes) else { return };
    let old = convert(&text, LineNumbers::LastDigit).unwrap();
    assert_eq!((old.lines, old.pairs.len()), (1614, 678));
    assert_eq!((old.begun, old.gaps, old.same_character), (705, 204, 27));
    assert_eq!(convert(&text, LineNumbers::Whole).unwrap().pairs.len(), 722);
}

fn sides(conversion: &Conversion) -> [Text; 2] {
    let side = |text: fn(&Pair) -> &[u8]| {
        let contents: Vec<u8> =
            conversion.pairs.iter().flat_map(|pair| [text(pair), b"\n"]).flatten().copied().collect();
        Text::check("side", contents.into(), Encoding::Utf8).unwrap()
    };
    [side(|pair| &pair.prompt), side(|pair| &pair.reply)]
}

fn check_self_dialogues(name: &str, old_and_whole: [usize; 2], types: [usize; 2], sizes: ([usize; 4], usize)) {
    let Some(text) = text(name, Encoding::Utf8) else { return };
    let old = convert(&text, LineNumbers::LastDigit).unwrap();
    let whole = convert(&text, LineNumbers::Whole).unwrap();
    assert_eq!([old.pairs.len(), whole.pairs.len()], old_and_whole);
    let [a, b] = sides(&old);
    assert_eq!([counts(&a).types(), counts(&b).types()], types);
    assert_eq!(bucket_sizes(&a, &b), sizes);
}

#[test]
fn self_dialogues_about_films_give_the_published_counts() {
    let name = "self-dialogue-corpus/movie_lines.movies.txt";
    check_self_dialogues(name, [13_644, 17_055], [7080, 7434], ([611, 3911, 7147, 1930], 45));
}

#[test]
fn self_dialogues_about_music_give_the_published_counts() {
    let name = "self-dialogue-corpus/movie_lines.music.txt";
    check_self_dialogues(name, [14_931, 17_280], [7615, 7838], ([811, 4486, 7200, 2351], 83));
}
