//! Storage on the local disk and in memory; the object store proper is tested against a real S3 server elsewhere.

use super::*;

fn local() -> (tempfile::TempDir, Storage) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let storage = Storage::open(folder.path().to_str().expect("temporary paths are UTF-8")).expect("a folder opens");
    (folder, storage)
}

#[tokio::test]
async fn a_plain_path_a_file_url_and_a_folder_below_are_one_place() {
    let (folder, storage) = local();
    storage.put("a/b.txt", "text").await.unwrap();
    let url = format!("file://{}/a", folder.path().display());
    assert_eq!(Storage::open(&url).unwrap().get("b.txt").await.unwrap(), "text");
    assert_eq!(storage.folder("a/").unwrap().get("b.txt").await.unwrap(), "text");
    let (parent, name) = open_object(&format!("{url}/b.txt")).unwrap();
    assert_eq!((parent.url(), name.as_str()), (url.as_str(), "b.txt"));
}

#[tokio::test]
async fn a_plain_path_may_go_up() {
    let (folder, storage) = local();
    storage.put("a/b/c.txt", "text").await.unwrap();
    let up = format!("{}/a/b/../../a/./b", folder.path().display());
    assert_eq!(Storage::open(&up).unwrap().get("c.txt").await.unwrap(), "text");
    let missing = format!("{}/nowhere/../a", folder.path().display());
    assert!(Storage::open(&missing).unwrap_err().to_string().contains("No such file"));
    assert!(Storage::open(&format!("file://{up}")).is_err());
}

#[tokio::test]
async fn half_written_files_of_killed_writers_are_removed() {
    let (folder, storage) = local();
    for name in ["run-1.json#1", "run-1.json#23", "run-1.json", "run-1#a", "other#1"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    storage.remove_unfinished("run-").await.unwrap();
    let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["other#1", "run-1#a", "run-1.json"]);
    storage.folder("nowhere").unwrap().remove_unfinished("run-").await.unwrap();
    Storage::open("memory://x").unwrap().remove_unfinished("run-").await.unwrap();
}

#[tokio::test]
async fn create_never_overwrites() {
    let (_folder, storage) = local();
    assert_eq!(storage.create("x", "1").await.unwrap(), Created::Yes);
    assert_eq!(storage.create("x", "2").await.unwrap(), Created::AlreadyThere);
    assert_eq!(storage.get("x").await.unwrap(), "1");
}

/// CKP-14: every prefix ends at a path border.
#[tokio::test]
async fn a_listing_stays_inside_its_folder() {
    let (_folder, storage) = local();
    for path in ["run1/a", "run1/deep/b", "run10/a", "run1-b/a", "run1.old/a"] {
        storage.put(path, "x").await.unwrap();
    }
    let paths: Vec<String> = storage.list("run1").await.unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["a", "deep/b"]);
}

#[tokio::test]
async fn one_level_shows_objects_and_folders_and_nothing_below_them() {
    let (_folder, local) = local();
    for storage in [local, Storage::open("memory://level/x").unwrap()] {
        for path in ["run1/a", "run1/deep/b", "run1/deep/er/c", "run10/d"] {
            storage.put(path, "x").await.unwrap();
        }
        let level = storage.list_level("run1").await.unwrap();
        assert_eq!(level.folders, ["deep"]);
        assert_eq!(level.objects.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(storage.list_level("").await.unwrap().folders, ["run1", "run10"]);
        assert_eq!(storage.list_level("none").await.unwrap(), Level { folders: vec![], objects: vec![] });
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_deleting_it_is_no_error() {
    let (_folder, storage) = local();
    assert!(storage.get("none").await.unwrap_err().is_not_found());
    assert_eq!(storage.get_if_there("none").await.unwrap(), None);
    assert_eq!(storage.size("none").await.unwrap(), None);
    storage.delete("none").await.unwrap();
}

#[tokio::test]
async fn a_probe_leaves_nothing_behind() {
    let (_folder, storage) = local();
    storage.probe().await.unwrap();
    assert_eq!(storage.list("").await.unwrap(), []);
}

#[tokio::test]
async fn a_large_object_travels_in_parts() {
    let storage = Storage::open("memory://parts/x").unwrap();
    let bytes = Bytes::from(vec![7u8; MULTIPART_BYTES + 5]);
    storage.put("big", bytes.clone()).await.unwrap();
    assert_eq!(storage.get("big").await.unwrap(), bytes);
}

#[test]
fn a_bad_url_says_what_is_wrong_and_never_shows_a_secret() {
    let message = |url: &str| StorageUrl::parse(url).unwrap_err().to_string();
    assert_eq!(
        message("ftp://x/y"),
        "bad storage URL ftp://x/y: the scheme must be one of file, s3, gs, az, memory, got ftp"
    );
    assert_eq!(message("s3:///key"), "bad storage URL s3:///key: the bucket is missing: s3://BUCKET/path");
    assert!(!message("s3://KEY:SECRET@bucket/x").contains("SECRET"));
    assert_eq!(StorageUrl::parse("s3://bucket//a//b/").unwrap().as_str(), "s3://bucket/a/b");
    assert_eq!(StorageUrl::parse("file:///").unwrap().as_str(), "file:///");
}

/// CKP-12: another client sees exactly the given name, and a listing returns what put was given.
#[tokio::test]
async fn names_are_kept_as_they_are_written() {
    let (folder, storage) = local();
    let name = "run [a]/ø b+c/50%25~#q%20ü";
    storage.put(name, "x").await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), "x");
    let paths: Vec<String> = storage.list("").await.unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, [name]);
    assert_eq!(storage.folder("run [a]/ø b+c").unwrap().get("50%25~#q%20ü").await.unwrap(), "x");
    assert!(storage.get("a\u{7}b").await.is_err());
}

#[tokio::test]
async fn a_folder_and_a_pipe_are_no_files() {
    let (folder, storage) = local();
    storage.put("deep/object", "x").await.unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, kind) in [("deep", "a folder"), ("pipe", "a pipe, socket or device")] {
        let read = storage.get(path).await.unwrap_err().to_string();
        assert_eq!(read, format!("read {}: expected a file, got {kind}", storage.url_of(path)));
        assert!(!storage.expect_file("look up", path).await.unwrap_err().retryable());
    }
}
