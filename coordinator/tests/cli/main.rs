//! The binary `coord` as users meet it: what it prints, how it exits, and how it behaves when coordinators fail.

mod demo;
mod exits;
mod fake;
mod outputs;
mod retries;
mod run;
mod several_jobs;
mod usage;
