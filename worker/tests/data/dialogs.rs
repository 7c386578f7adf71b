//! The dialogue converter from file to files.

use crate::support::Folder;
use worker::data::dialog_files::convert_files;
use worker::data::dialogs::DialogOptions;
use worker::data::encoding::Encoding;

fn movie_lines(turns: usize) -> String {
    let line = |n: usize| format!("L{n} +++$+++ u{} +++$+++ m0 +++$+++ NAME +++$+++ Turn {n}\n", n % 2);
    (0..turns).rev().map(line).collect()
}

#[test]
fn four_files_are_written_and_their_lines_belong_together() {
    let folder = Folder::new();
    folder.write("movie_lines.txt", movie_lines(40).trim_end());
    let convert = |seed| {
        let options = DialogOptions { seed, ..DialogOptions::default() };
        convert_files(&folder.storage, &folder.path("movie_lines.txt"), &folder.path("out"), options)
    };
    let report = convert(1).unwrap();
    assert_eq!((report.lines, report.pairs, report.train_pairs, report.test_pairs), (40, 20, 16, 4));
    assert_eq!(report.urls, ["train.a", "train.b", "test.a", "test.b"].map(|name| folder.path(&format!("out/{name}"))));
    let lines = |name: &str| -> Vec<String> {
        String::from_utf8(folder.read(name)).unwrap().lines().map(str::to_owned).collect()
    };
    let mut prompts = Vec::new();
    for set in ["train", "test"] {
        let (a, b) = (lines(&format!("out/{set}.a")), lines(&format!("out/{set}.b")));
        assert_eq!(a.len(), b.len());
        for (prompt, reply) in a.iter().zip(&b) {
            let number: usize = prompt.strip_prefix("turn ").unwrap().parse().unwrap();
            assert_eq!(*reply, format!("turn {}", number + 1));
            prompts.push(number);
        }
    }
    prompts.sort_unstable();
    assert_eq!(prompts, (0..40).step_by(2).collect::<Vec<_>>());

    assert_eq!(convert(1).unwrap(), report, "the same again changes nothing");
    let taken = convert(2).unwrap_err();
    assert_eq!(taken.to_string(), format!("{} is there already and has other contents", folder.path("out/train.a")));
}

#[test]
fn a_faulty_line_or_a_file_in_the_way_leaves_nothing_behind() {
    let folder = Folder::new();
    let convert = || {
        let (input, out) = (folder.path("movie_lines.txt"), folder.path("out"));
        convert_files(&folder.storage, &input, &out, DialogOptions::default()).unwrap_err().to_string()
    };
    assert!(convert().ends_with("movie_lines.txt does not exist"));
    folder.write("movie_lines.txt", movie_lines(6) + "L7 +++$+++ u0\n");
    assert!(convert().ends_with("movie_lines.txt line 7: expected 5 fields joined by \" +++$+++ \", got 2"));
    folder.write("movie_lines.txt", "");
    assert!(convert().ends_with("movie_lines.txt holds no dialogue: 0 lines, of which none answers another"));
    assert!(!folder.has("out"));
    folder.write("movie_lines.txt", movie_lines(6));
    folder.write("out/test.b", "mine\n");
    assert!(convert().ends_with("out/test.b is there already and has other contents"));
    assert!(!folder.has("out/train.a") && !folder.has("out/train.b") && !folder.has("out/test.a"));
    assert_eq!(folder.read("out/test.b"), b"mine\n");
}

#[test]
fn a_file_that_cannot_be_written_takes_the_others_back() {
    let mut folder = Folder::new();
    folder.write("movie_lines.txt", movie_lines(6));
    folder.storage.read_only = Some(folder.path("out/test.b"));
    let (input, out) = (folder.path("movie_lines.txt"), folder.path("out"));
    convert_files(&folder.storage, &input, &out, DialogOptions::default()).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path("out")).unwrap().count(), 0);
}

#[test]
fn windows_1252_text_can_be_kept_or_decoded() {
    let folder = Folder::new();
    let second = b"L2 +++$+++ u1 +++$+++ m0 +++$+++ N +++$+++ Fine\x85\n";
    let first = b"L1 +++$+++ u0 +++$+++ m0 +++$+++ N +++$+++ It\x92s \xc9ve\n";
    folder.write("movie_lines.txt", [&second[..], first].concat());
    let convert = |out: &str, encoding| {
        let options = DialogOptions { encoding, ..DialogOptions::default() };
        convert_files(&folder.storage, &folder.path("movie_lines.txt"), &folder.path(out), options)
    };
    convert("bytes", Encoding::Bytes).unwrap();
    assert_eq!(folder.read("bytes/train.a"), b"it\x92s \xc9ve\n");
    convert("decoded", Encoding::Windows1252).unwrap();
    assert_eq!(folder.read("decoded/train.a"), "it’s éve\n".as_bytes());
    assert_eq!(folder.read("decoded/train.b"), "fine…\n".as_bytes());
    let refused = convert("refused", Encoding::Utf8).unwrap_err();
    assert!(refused.to_string().ends_with("line 1: byte 0x85 at offset 47 is not valid UTF-8"), "{refused}");
}
