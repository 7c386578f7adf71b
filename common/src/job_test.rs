//! Tests of the limits of a job spec and of what its refusals say.

use super::*;

fn settings() -> JobSettings {
    JobSettings::new(JobId::parse("chat").expect("a valid id"), "translate")
}

fn refusal(change: impl FnOnce(&mut JobSettings)) -> SpecError {
    let mut changed = settings();
    change(&mut changed);
    JobSpec::new(changed).expect_err("the change makes the spec invalid")
}

#[test]
fn a_spec_with_defaults_is_valid() {
    let spec = JobSpec::new(settings()).expect("valid");
    assert_eq!((spec.workers_min(), spec.workers_max(), spec.micro_batches), (1, 1, 8));
    assert_eq!(spec.max_running, Millis::from_seconds(604_800));
    assert_eq!(spec.resolve_job_dir("s3://bucket/"), "s3://bucket/jobs/chat");
}

#[test]
fn more_workers_than_micro_batches_are_refused_with_the_flag_that_allows_them() {
    let error = refusal(|spec| spec.workers = 1..=9);
    assert_eq!(error.to_string(), "workers must be between 1 and 8 (the job's micro-batches), got 9");
    assert_eq!(error.hint().as_deref(), Some("use `--micro-batches 16` to allow more workers"));
    assert_eq!(error.code(), "invalid_spec");
}

#[test]
fn no_workers_and_swapped_limits_are_refused() {
    assert_eq!(refusal(|spec| spec.workers = 0..=0), SpecError::Workers { micro_batches: 8, got: 0 });
    #[allow(clippy::reversed_empty_ranges)]
    let swapped = refusal(|spec| spec.workers = 4..=2);
    assert_eq!(swapped.hint().as_deref(), Some("use `--workers 2:4`"));
}

#[test]
fn a_hint_never_proposes_more_micro_batches_than_are_allowed() {
    let error = refusal(|spec| spec.workers = 1..=1_025);
    assert_eq!(error.hint(), None);
}

#[test]
fn a_job_dir_that_is_no_url_is_refused_and_an_absolute_path_gets_its_url() {
    assert_eq!(
        refusal(|spec| spec.job_dir = Some("/data/out".into())).hint().as_deref(),
        Some("use `file:///data/out`")
    );
    for text in ["./out", "out", "", "://x", "s3://", "s3://a b", "3s://a"] {
        let error = refusal(|spec| spec.job_dir = Some(text.into()));
        assert!(matches!(error, SpecError::JobDir { .. }), "{text}: {error}");
    }
    let mut kept = settings();
    kept.job_dir = Some("file:///data/out".into());
    assert_eq!(JobSpec::new(kept).expect("valid").resolve_job_dir("s3://bucket"), "file:///data/out");
}

#[test]
fn labels_follow_the_rule_of_managed_services() {
    let label = |key: &str, value: &str| {
        let mut changed = settings();
        changed.labels.insert(key.to_owned(), value.to_owned());
        JobSpec::new(changed).err()
    };
    for (key, value) in [("team", ""), ("team", "9-a_b"), ("数", "x"), (&"a".repeat(63), &"b".repeat(63))] {
        assert_eq!(label(key, value), None, "{key}={value}");
    }
    for key in ["", "Team", "9a", "_a", "a.b", &"a".repeat(64)] {
        assert!(matches!(label(key, "x"), Some(SpecError::LabelKey { .. })), "{key}");
    }
    for value in ["X", "a b", &"b".repeat(64)] {
        assert!(matches!(label("team", value), Some(SpecError::LabelValue { .. })), "{value}");
    }
    let many = |spec: &mut JobSettings| spec.labels = (0..65).map(|n| (format!("k{n}"), String::new())).collect();
    assert_eq!(refusal(many), SpecError::LabelCount { got: 65 });
}

#[test]
fn arguments_are_limited_in_number_and_in_bytes() {
    assert_eq!(refusal(|spec| spec.args = vec![Vec::new(); 10_001]), SpecError::ArgumentCount { got: 10_001 });
    assert_eq!(refusal(|spec| spec.args = vec![vec![0; 262_145]]), SpecError::ArgumentBytes { got: 262_145 });
    let mut largest = settings();
    largest.args = vec![vec![0; 262_144]];
    assert!(JobSpec::new(largest).is_ok());
}

#[test]
fn numbers_outside_their_range_name_the_field_and_the_limits() {
    let error = refusal(|spec| spec.priority = 1_001);
    assert_eq!(error.to_string(), "priority must be between 0 and 1000, got 1001");
    for change in [
        (|spec| spec.slots_per_worker = 0) as fn(&mut JobSettings),
        |spec| spec.micro_batches = 0,
        |spec| spec.micro_batches = 1_025,
        |spec| spec.cpus = Some(0),
        |spec| spec.grace = Millis::ZERO,
        |spec| spec.max_running = Millis::ZERO,
    ] {
        assert!(matches!(refusal(change), SpecError::Range { .. }));
    }
}

#[test]
fn a_train_directory_among_the_program_flags_wins_and_the_last_one_counts() {
    let url = |args: &[&str]| train_url(args, "s3://b/jobs/a");
    assert_eq!(url(&["--size=64", "--train_director=x"]), "s3://b/jobs/a");
    assert_eq!(url(&["--train_dir=s3://b/t"]), "s3://b/t");
    assert_eq!(url(&["--train-dir", "s3://b/t", "--size=64"]), "s3://b/t");
    assert_eq!(url(&["--train_dir=x", "--train_dir", "y"]), "y");
}
