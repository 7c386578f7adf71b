//! Where a run's objects lie, and what progress and result say.

use coord_tests::local::Place;
use serde_json::Value;

fn progress(place: &Place, job: &str) -> Vec<Value> {
    let names = place.names(&format!("{job}/progress"));
    let text: String = names.iter().map(|name| place.read(&format!("{job}/progress/{name}"))).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_relative_path_an_absolute_one_and_a_file_url_are_the_same() {
    let place = Place::with_pairs(100, 10);
    let absolute = place.file("absolute").display().to_string();
    let url = format!("file://{}", place.file("url").display());
    let digests: Vec<String> = ["./out", &absolute, &url]
        .into_iter()
        .map(|job_dir| {
            place.train(&format!("--workers 2 --job-dir {job_dir}"), "--steps=20").good();
            place.digest(job_dir)
        })
        .collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");
    for folder in ["out", "absolute", "url"] {
        assert_eq!(place.names(folder), ["data", "progress", "result.json", "train"]);
    }
    let apart = place.train("", "--steps=20 --train_dir=apart --data_dir=words");
    apart.good();
    assert_eq!(place.digest("apart"), digests[0]);
}

#[test]
fn progress_and_result_tell_what_the_lines_told() {
    let place = Place::with_pairs(100, 10);
    let out = place.train("--workers 2 --job-dir job", "--steps=50").good();
    let lines = progress(&place, "job");
    assert_eq!(lines.iter().map(|line| line["step"].as_u64().unwrap()).collect::<Vec<_>>(), [20, 40, 50]);
    assert_eq!(place.names("job/progress")[0], "00000000000000000000.jsonl");
    for line in &lines {
        let (step, perplexity) = (line["step"].as_u64().unwrap(), line["train_perplexity"].as_f64().unwrap());
        assert!(out.contains(&format!("global step {step} learning rate 0.5000 step-time ")), "{out}");
        assert!(out.contains(&format!(" perplexity {perplexity:.2}\n")), "{line}");
        assert_eq!((line["learning_rate"].as_f64(), line["eval"].as_array().unwrap().len()), (Some(0.5), 4));
        assert!(line["step_seconds"].as_f64().unwrap() > 0.0);
    }
    let result: Value = serde_json::from_str(&place.read("job/result.json")).unwrap();
    assert_eq!((result["step"].as_u64(), result["state_digest"].as_str()), (Some(50), Some(&*place.digest("job"))));
    assert_eq!((&result["perplexity"], &result["eval"]), (&lines[2]["train_perplexity"], &lines[2]["eval"]));
    assert!(result["seconds"].as_f64().unwrap() > 0.0);

    // A resumed run goes on with new objects.
    place.train("--job-dir job", "--steps=60").good();
    assert_eq!(progress(&place, "job").last().unwrap()["step"], 60);
    assert!(place.read("job/result.json").contains("\"step\":60"));
}

#[test]
fn objects_that_cannot_be_written_are_warnings() {
    let place = Place::with_pairs(100, 10);
    std::fs::create_dir_all(place.file("job")).unwrap();
    place.write("job/progress", "in the way");
    std::fs::create_dir_all(place.file("job/result.json/occupied")).unwrap();
    let ended = place.train("--job-dir job", "--steps=20");
    ended.good();
    assert!(ended.err.contains("progress") && ended.err.contains("result.json was not written"), "{}", ended.err);
}
