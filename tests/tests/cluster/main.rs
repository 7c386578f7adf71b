//! Whole clusters of real processes, which really die.

mod commands;
mod demonstration;
mod digests;
mod failures;
mod frozen;
mod launcher;
mod leaders;
mod life;
mod object_storage;
mod placement;
mod storage_faults;
mod surfaces;
