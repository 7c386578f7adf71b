//! Compiles the `.proto` files with `protox`, so that no `protoc` has to be installed.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    for folder in ["coord/v1", "coord/log/v1", "coord/peer/v1"] {
        println!("cargo:rerun-if-changed={folder}");
        for entry in std::fs::read_dir(root.join(folder))? {
            files.push(entry?.path());
        }
    }
    files.sort();
    let descriptors = protox::compile(&files, [&root])?;
    // Ordered maps: equal messages have equal bytes, which the log and its golden files rely on.
    // Without the feature the crate is messages alone, and what is pure can be built from it.
    let services = "#[cfg(feature = \"services\")]";
    tonic_prost_build::configure()
        .client_mod_attribute(".", services)
        .server_mod_attribute(".", services)
        .bytes(".")
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}
