//! `--decode` and `coord-worker answer`: a line for each line.

use coord_tests::local::{Place, run_with};
use serde_json::Value;

fn trained() -> Place {
    let place = Place::with_pairs(200, 10);
    place.train("--job-dir job", "--steps=60 --steps_per_checkpoint=60").good();
    place
}

#[test]
fn every_line_has_its_answer_in_its_place_and_a_blank_one_stays_blank() {
    let place = trained();
    let questions = place.read("train.a");
    let input: Vec<&str> =
        (0..2500).zip(questions.lines().cycle()).map(|(line, text)| if line % 5 == 4 { "" } else { text }).collect();
    let text = input.join("\n") + "\n";
    let decode = |flags: &str| {
        let args: Vec<String> =
            format!("local -- --decode --train_dir=job/train {flags}").split(' ').map(str::to_owned).collect();
        run_with(place.path(), &args, text.as_bytes()).good()
    };
    let decoded = decode("--batch_size=16");
    assert_eq!(decoded, decode("--batch_size=1"));
    let answers: Vec<&str> = decoded.split_terminator('\n').collect();
    assert_eq!(answers.len(), 2500);
    assert!(answers.iter().skip(4).step_by(5).all(|answer| answer.is_empty()));

    // Line by line from another process: the same answers, so none has slipped.
    let some: Vec<usize> = (0..2500).step_by(97).collect();
    let asked: String =
        some.iter().map(|line| serde_json::json!({"prompt": input[*line]}).to_string() + "\n").collect();
    let args = ["answer", "job"].map(str::to_owned);
    let replies = run_with(place.path(), &args, asked.as_bytes()).good();
    for (reply, line) in replies.lines().skip(1).zip(&some) {
        let reply: Value = serde_json::from_str(reply).unwrap();
        assert_eq!(reply["text"], answers[*line], "line {line}");
    }
    assert_eq!(replies.lines().count(), some.len() + 1);
}

#[test]
fn long_lines_are_cut_with_a_warning_that_names_the_limit_and_decoding_goes_on() {
    let place = trained();
    let line = |tokens: usize| vec!["so"; tokens].join(" ");
    let input = format!("{}\n{}\n{}\n{}\nhow are you\n", line(40), line(41), line(60), line(5000));
    let decoded = place.decode("job/train", input.as_bytes());
    let answers = decoded.good();
    assert_eq!(answers.lines().count(), 5);
    for tokens in [41, 60, 5000] {
        let warning = format!("Sentence truncated: it has {tokens} tokens, the limit is 40");
        assert!(decoded.err.contains(&warning), "{}", decoded.err);
    }
    assert_eq!(decoded.err.matches("truncated").count(), 3, "{}", decoded.err);
    let alone = place.decode("job/train", b"how are you\n").good();
    assert_eq!(answers.lines().last(), alone.lines().next());
}

#[test]
fn odd_input_is_answered_line_by_line() {
    let place = trained();
    let decoded = place.decode("job/train", b"It\x92s late\nnul \0 byte\nreturn\r\n\xe2\x80\xa8 how\nno end").good();
    assert_eq!(decoded.lines().count(), 5, "{decoded:?}");
    assert_eq!(place.decode("job/train", b"").good(), "");
}

#[test]
fn a_job_folder_that_was_moved_or_copied_answers_with_its_own_words() {
    let place = trained();
    let answer = place.decode("job/train", b"how are you\n").good();
    assert!(
        std::process::Command::new("cp")
            .arg("-r")
            .args([place.file("job"), place.file("copy")])
            .status()
            .unwrap()
            .success()
    );
    std::fs::remove_dir_all(place.file("job")).unwrap();
    assert_eq!(place.decode("copy/train", b"how are you\n").good(), answer);
    std::fs::remove_dir_all(place.file("copy/data")).unwrap();
    let error = place.decode("copy/train", b"how are you\n");
    assert!(error.bad(1).contains("job/data/vocab200.from not found"), "{}", error.err);
    assert!(error.err.contains("--data_dir"), "{}", error.err);
}
