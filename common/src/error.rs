//! What every public error tells besides its text.

/// A stable code for programs, whether trying again can help, and what a person can do.
pub trait Coded: std::error::Error {
    /// Never changes once released: scripts compare it.
    fn code(&self) -> &'static str;

    /// True when the same call may succeed later without any change to it.
    fn retryable(&self) -> bool;

    /// What to do, as a sentence fragment in lower case: "use `--micro-batches 16` to allow more workers".
    fn hint(&self) -> Option<String> {
        None
    }
}
