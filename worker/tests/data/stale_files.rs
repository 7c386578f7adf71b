//! Vocabulary and id files that are there already: used, adopted, refused or left alone.

use crate::support::Folder;
use worker::data::buckets::TRANSLATE_BUCKETS;
use worker::data::digest::sha256_hex;
use worker::data::pairs::read_pairs;

const VOCABULARY: &str = "_PAD\n_GO\n_EOS\n_UNK\na\nb\n";

fn small() -> Folder {
    let folder = Folder::new();
    for name in ["train.a", "train.b", "test.a", "test.b"] {
        folder.write(name, "a b\na\n");
    }
    folder
}

/// The id files beside train.a, without notes.
fn ids_of_train_a(folder: &Folder) -> Vec<String> {
    let names = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("train.a.ids") && !name.ends_with(".digest"));
    names.sort();
    names
}

#[test]
fn new_data_under_an_old_name_never_meets_the_old_vocabulary_in_silence() {
    let folder = small();
    folder.prepare(&folder.settings(100)).0.unwrap();
    folder.write("train.a", "b a\nb c\n");
    let (message, error) = folder.refusal(&folder.settings(100));
    let [old, new] = [&b"a b\na\n"[..], b"b a\nb c\n"].map(sha256_hex);
    let expected = format!("data/vocab100.from was made from data with digest {old}, but train.a has digest {new}");
    assert_eq!(message, expected);
    let hint = error.hint().unwrap();
    assert!(hint.contains("delete") && hint.contains("`--data_dir`") && hint.contains("`--keep_vocabulary`"), "{hint}");

    for name in ["data/vocab100.from", "data/vocab100.from.digest"] {
        std::fs::remove_file(folder.path(name)).unwrap();
    }
    let prepared = folder.prepare(&folder.settings(100)).0.unwrap();
    assert_eq!(folder.read("data/vocab100.from"), b"_PAD\n_GO\n_EOS\n_UNK\nb\na\nc\n");
    assert_eq!(folder.read("train.a.ids100"), b"4 5\n4\n", "the old ids are left as they are");
    assert_eq!(prepared.train.source.read(&folder.storage).unwrap(), "4 5\n4 6\n");
}

#[test]
fn a_kept_vocabulary_gives_new_ids_for_new_data() {
    let folder = small();
    folder.prepare(&folder.settings(100)).0.unwrap();
    folder.write("train.a", "b a\nb c\n");
    let mut settings = folder.settings(100);
    settings.keep_vocabulary = true;
    let (prepared, said) = folder.prepare(&settings);
    let prepared = prepared.unwrap();
    assert_eq!(prepared.train.source.read(&folder.storage).unwrap(), "5 4\n5 3\n");
    assert_eq!(ids_of_train_a(&folder).len(), 2);
    for expected in [
        "Keeping vocabulary data/vocab100.from, whatever data it was made from",
        "train.a.ids100 was made from other data or another vocabulary and is left as it is",
        "The ids of train.a are in train.a.ids100.",
    ] {
        assert!(said.iter().any(|line| line.starts_with(expected)), "{expected}: {said:?}");
    }
    assert_eq!(folder.prepare(&settings).0.unwrap(), prepared, "found again without making it again");
    assert_eq!(ids_of_train_a(&folder).len(), 2);
}

#[test]
fn files_of_the_old_program_are_verified_and_adopted() {
    let folder = small();
    folder.write("train.a", "a c b\na\n");
    // The old program left the order among equal counts to chance.
    folder.write("data/vocab100.from", "_PAD\n_GO\n_EOS\n_UNK\na\nb\nc\n");
    folder.write("train.a.ids100", "4 6 5\n4\n");
    let (prepared, said) = folder.prepare(&folder.settings(100));
    assert!(!said.iter().any(|line| line.starts_with("Creating vocabulary data/vocab100.from")), "{said:?}");
    assert_eq!(prepared.unwrap().train.source.url, folder.path("train.a.ids100"));
    assert!(folder.has("data/vocab100.from.digest") && folder.has("train.a.ids100.digest"));
    assert_eq!(ids_of_train_a(&folder), ["train.a.ids100"]);
}

#[test]
fn a_vocabulary_of_unknown_origin_is_refused() {
    let folder = small();
    folder.write("data/vocab100.from", "_PAD\n_GO\n_EOS\n_UNK\nb\na\n");
    let (message, _) = folder.refusal(&folder.settings(100));
    assert!(message.starts_with("data/vocab100.from has no valid data/vocab100.from.digest"), "{message}");
    folder.write("data/vocab100.from", "_PAD\n_GO\n_EOS\n_UNK\na\nb\na\n");
    assert_eq!(folder.refusal(&folder.settings(100)).0, "data/vocab100.from line 7: a stands on line 5 already");
    folder.write("data/vocab100.from", "a\nb\n");
    assert_eq!(folder.refusal(&folder.settings(100)).0, "data/vocab100.from line 1: expected _PAD, got a");
}

#[test]
fn cut_ids_are_not_used() {
    let folder = small();
    folder.prepare(&folder.settings(100)).0.unwrap();
    folder.write("train.a.ids100", "4 5\n");
    let prepared = folder.prepare(&folder.settings(100)).0.unwrap();
    assert_eq!(prepared.train.source.read(&folder.storage).unwrap(), "4 5\n4\n");
    assert_eq!(ids_of_train_a(&folder).len(), 2);

    folder.write(&ids_of_train_a(&folder)[1], "5\n5\n");
    let error = read_pairs(&folder.storage, &prepared.train, &TRANSLATE_BUCKETS, 0, &mut |_| {}).unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("data-changed", false));

    let elsewhere = folder.prepare(&folder.settings(100)).0.unwrap().train.source;
    assert!(elsewhere.url.starts_with(&folder.path("data/train.a.ids100.")));
    folder.write(&elsewhere.url, "5\n5\n");
    let taken = folder.prepare(&folder.settings(100)).0.unwrap_err();
    assert_eq!(
        taken.to_string(),
        format!("{} is in the way: it was not made from {}", elsewhere.url, folder.path("train.a"))
    );
}

#[test]
fn a_vocabulary_published_without_its_note_gets_one() {
    let folder = small();
    folder.write("data/vocab100.from", VOCABULARY);
    folder.write("data/vocab100.from.digest", "cut in ha");
    folder.prepare(&folder.settings(100)).0.unwrap();
    let note = String::from_utf8(folder.read("data/vocab100.from.digest")).unwrap();
    assert!(note.starts_with("{\"file\":\"") && note.contains("\"data\":\""), "{note}");
}

#[test]
fn where_nothing_can_be_written_beside_the_data_the_ids_go_to_the_data_folder() {
    let mut folder = small();
    folder.storage.read_only = Some(folder.path("t"));
    let (prepared, said) = folder.prepare(&folder.settings(100));
    let prepared = prepared.unwrap();
    assert!(prepared.train.source.url.starts_with(&folder.path("data/train.a.ids100.")));
    assert_eq!(prepared.train.source.read(&folder.storage).unwrap(), "4 5\n4\n");
    assert!(said.contains(&"Nothing can be written beside train.a".to_owned()), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("The ids of train.a are in data/train.a.ids100.")), "{said:?}");
    assert_eq!(ids_of_train_a(&folder), [""; 0]);

    let writes = folder.storage.writes();
    assert_eq!(folder.prepare(&folder.settings(100)).0.unwrap(), prepared);
    assert_eq!(folder.storage.writes(), writes, "found again without making it again");
}

#[test]
fn many_makers_at_once_agree() {
    let folder = small();
    let settings = folder.settings(100);
    let outcomes = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..6).map(|_| scope.spawn(|| folder.prepare(&settings).0)).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect::<Vec<_>>()
    });
    let mut prepared = outcomes.into_iter().map(Result::unwrap);
    let first = prepared.next().unwrap();
    assert!(prepared.all(|other| other == first));
    assert_eq!(ids_of_train_a(&folder), ["train.a.ids100"]);
}
