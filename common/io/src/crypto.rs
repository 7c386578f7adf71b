//! The one TLS provider of the process.

/// Makes `ring` the provider. Call it first thing in `main`; further calls do nothing.
pub fn install() {
    // An error means that a provider is installed already: ours, since the build holds no other (a test counts them).
    let _ = rustls::crypto::ring::default_provider().install_default();
}
