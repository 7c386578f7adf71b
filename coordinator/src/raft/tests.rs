//! Raft as a whole, in memory and on disk.

mod cluster;
mod disk_log;
mod lost_directory;
