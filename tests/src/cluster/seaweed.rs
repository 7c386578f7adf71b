//! SeaweedFS: a real S3 server with one bucket, a key that may do everything, one that
//! may only read, and one that may not even do that.

use std::path::Path;
use std::sync::OnceLock;

use coord_io::storage::Storage;
use serde_json::json;

use super::ports::Port;
use super::process::{Process, clean_command};
use super::tools;
use super::waiting::until;

pub const BUCKET: &str = "models";

#[derive(Debug)]
pub struct SeaweedFs {
    process: Process,
    s3: Port,
    /// Kept for the life of the server.
    _others: Vec<Port>,
}

impl SeaweedFs {
    /// Starts the server; returns when the bucket is there and can be written.
    pub fn start(folder: &Path) -> Self {
        let data = folder.join("seaweedfs");
        std::fs::create_dir_all(&data).expect("a directory for SeaweedFS");
        let config = data.join("s3.json");
        let identity = |name: &str, actions: &[&str]| {
            json!({ "name": name, "actions": actions,
                "credentials": [{ "accessKey": name, "secretKey": format!("secret-of-{name}") }] })
        };
        let identities = [
            identity("writer", &["Admin", "Read", "Write", "List", "Tagging"]),
            identity("reader", &["Read", "List"]),
            identity("stranger", &["Read:strangers", "Write:strangers", "List:strangers"]),
        ];
        std::fs::write(&config, json!({ "identities": identities }).to_string()).expect("a configuration file");

        let s3 = Port::reserve();
        let names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port"];
        let others: Vec<(&str, Port)> =
            names.into_iter().chain(["filer.port.grpc", "s3.port.grpc"]).map(|name| (name, Port::reserve())).collect();
        let mut command = clean_command(tools::weed());
        command.arg("server").arg("-s3").arg(format!("-dir={}", data.display()));
        command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.volumeSizeLimitMB=64", "-volume.max=20"]);
        command.args(["-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]);
        command.arg("-master.telemetry=false");
        command.arg(format!("-s3.config={}", config.display())).arg(format!("-s3.port={}", s3.number()));
        command.args(others.iter().map(|(name, port)| format!("-{name}={}", port.number())));
        let process = Process::start("seaweedfs", &mut command, folder);
        let mut server = Self { process, s3, _others: others.into_iter().map(|(_, port)| port).collect() };
        server.make_bucket();
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("s3://{BUCKET}/{path}")
    }

    /// For processes that read and write.
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment_of("writer")
    }

    /// For processes with the key `writer`, `reader` or `stranger`.
    pub fn environment_of(&self, name: &str) -> Vec<(String, String)> {
        let secret = format!("secret-of-{name}");
        let mut environment = self.environment_without_key();
        environment.push(("AWS_ACCESS_KEY_ID".to_owned(), name.to_owned()));
        environment.push(("AWS_SECRET_ACCESS_KEY".to_owned(), secret));
        environment
    }

    /// The server's address alone.
    pub fn environment_without_key(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.s3.address());
        vec![
            ("AWS_ENDPOINT_URL".to_owned(), endpoint),
            // Nobody asks the metadata service of a cloud that this machine is not in.
            ("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned()),
        ]
    }

    /// A folder of the bucket, opened in this process with the key that may write.
    pub fn open(&self, path: &str) -> Storage {
        static SET: OnceLock<()> = OnceLock::new();
        SET.get_or_init(|| {
            for (name, value) in self.environment() {
                // SAFETY: nextest gives each test a process of its own, and no other thread of it reads the
                // environment while the first folder is opened.
                unsafe { std::env::set_var(name, value) };
            }
        });
        Storage::open(&self.url(path)).expect("a URL of the bucket")
    }

    fn make_bucket(&mut self) {
        let master = &self._others[0];
        let (master, filer) = (grpc_style(master, &self._others[1]), grpc_style(&self._others[4], &self._others[5]));
        until("a bucket in SeaweedFS", || {
            self.process.assert_alive();
            let mut shell = clean_command(tools::weed());
            shell.arg("shell").arg(format!("-master={master}")).arg(format!("-filer={filer}"));
            let mut shell = super::client::Followed::start(shell);
            shell.say(&format!("s3.bucket.create -name {BUCKET}"));
            shell.say("exit");
            let ended = shell.end();
            let said = format!("{}{}", ended.stdout, ended.stderr);
            let there = said.contains("created bucket") || said.contains("already exists");
            match there && std::net::TcpStream::connect(self.s3.address()).is_ok() {
                true => Ok(()),
                false => Err(ended.to_string()),
            }
        });
    }
}

/// HOST:PORT.GRPC_PORT, as SeaweedFS writes addresses whose second port is not the first plus 10,000.
fn grpc_style(port: &Port, grpc: &Port) -> String {
    format!("{}.{}", port.address(), grpc.number())
}
