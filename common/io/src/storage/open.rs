//! From a URL to an open store, with the credentials of each cloud's usual environment.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::{Storage, StorageError, StorageUrl};

/// A request is tried again for so long before its error is shown.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES_MAX: usize = 5;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub fn open(url: &StorageUrl) -> Result<Storage, StorageError> {
    let (bucket, key) = url.bucket_and_key();
    let (store, identity): (Arc<dyn ObjectStore>, String) = match url.scheme() {
        "file" => {
            let store = LocalFileSystem::new().with_fsync(true);
            (Arc::new(store), format!("user {}", user_name()))
        }
        "memory" => (memory(bucket), "none".to_owned()),
        "s3" => (Arc::new(s3(url, bucket)?), s3_identity()),
        "gs" => (Arc::new(gs(url, bucket)?), gs_identity()),
        _ => (Arc::new(az(url, bucket)?), az_identity()),
    };
    let folder = path("", key).map_err(|why| StorageError::InvalidUrl { url: url.as_str().to_owned(), why })?;
    Ok(Storage { store, folder, url: url.clone(), identity: identity.into() })
}

/// The path of an object exactly as it is written: nothing is encoded, so that any other client sees the same name.
pub(super) fn path(folder: &str, relative: &str) -> Result<Path, String> {
    let parts: Vec<&str> = folder.split('/').chain(relative.split('/')).filter(|part| !part.is_empty()).collect();
    Path::parse(parts.join("/"))
        .map_err(|error| format!("{error}; a path may not hold `.`, `..` or control characters"))
}

fn user_name() -> String {
    // In containers and under service managers nobody sets the name.
    let number = || std::fs::metadata("/proc/self").map_or_else(|_| "unknown".to_owned(), |own| own.uid().to_string());
    variable(&["USER", "LOGNAME"]).unwrap_or_else(number)
}

/// One store per name and process, so that two openings see the same objects.
fn memory(name: &str) -> Arc<dyn ObjectStore> {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, OnceLock};
    static STORES: OnceLock<Mutex<BTreeMap<String, Arc<InMemory>>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    stores.entry(name.to_owned()).or_default().clone()
}

fn retry() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT }
}

fn client(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        // A custom endpoint says by its scheme whether it is plain; the clouds themselves are always TLS.
        .with_allow_http(endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")))
}

fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok()).filter(|value| !value.is_empty())
}

fn build<T>(url: &StorageUrl, result: Result<T, object_store::Error>) -> Result<T, StorageError> {
    result.map_err(|error| StorageError::InvalidUrl { url: url.as_str().to_owned(), why: error.to_string() })
}

fn s3(url: &StorageUrl, bucket: &str) -> Result<object_store::aws::AmazonS3, StorageError> {
    crate::crypto::install();
    let endpoint = variable(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(retry())
        .with_client_options(client(endpoint.as_deref()));
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if variable(&["AWS_REGION", "AWS_DEFAULT_REGION"]).is_none() {
        builder = builder.with_region("us-east-1");
    }
    build(url, builder.build())
}

fn s3_identity() -> String {
    if let Some(key) = variable(&["AWS_ACCESS_KEY_ID"]) {
        return format!("access key {key}");
    }
    if variable(&["AWS_WEB_IDENTITY_TOKEN_FILE"]).is_some() {
        return "web identity token".to_owned();
    }
    if variable(&["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]).is_some() {
        return "container credentials".to_owned();
    }
    "no credentials in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set)".to_owned()
}

fn gs(url: &StorageUrl, bucket: &str) -> Result<object_store::gcp::GoogleCloudStorage, StorageError> {
    crate::crypto::install();
    let endpoint = variable(&["GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST"]);
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(retry())
        .with_client_options(client(endpoint.as_deref()));
    if let Some(endpoint) = endpoint {
        builder = builder.with_base_url(&endpoint);
    }
    build(url, builder.build())
}

fn gs_identity() -> String {
    match variable(&["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_APPLICATION_CREDENTIALS"]) {
        Some(path) if path.starts_with('/') => format!("service account file {path}"),
        Some(_) => "service account of the environment".to_owned(),
        None => "no credentials in the environment (GOOGLE_APPLICATION_CREDENTIALS is not set)".to_owned(),
    }
}

fn az(url: &StorageUrl, container: &str) -> Result<object_store::azure::MicrosoftAzure, StorageError> {
    crate::crypto::install();
    let endpoint = variable(&["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"]);
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(retry())
        .with_client_options(client(endpoint.as_deref()));
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    build(url, builder.build())
}

fn az_identity() -> String {
    match variable(&["AZURE_STORAGE_ACCOUNT_NAME"]) {
        Some(account) => format!("account {account}"),
        None => "no account in the environment (AZURE_STORAGE_ACCOUNT_NAME is not set)".to_owned(),
    }
}
