//! The translate trainer: a sequence-to-sequence model from pairs of text lines, as the old `translate.py`.

pub mod flags;
