//! The translate trainer as a user meets it: processes, files, messages and exit statuses.

mod damage;
mod data;
mod decode;
mod flags;
mod kills;
mod numbers;
mod objects;
mod resume;
mod same_bits;
