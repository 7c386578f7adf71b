//! Pure domain types shared by coordinator and worker: no I/O, no clock, no randomness.
