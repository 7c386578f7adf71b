//! From text files to batches, through the files on disk.

mod dialogs;
mod excerpt;
mod feeding;
mod outside_data;
mod preparing;
mod stale_files;
mod support;
