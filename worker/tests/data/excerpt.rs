//! The shipped dialogues against figures of an independent implementation of the rules.
//!
//! The figures were computed once with a short Python program (regular expressions and `collections.Counter`, texts
//! lower-cased as `str`): conversion, vocabularies of 1,000, ids and buckets of all pairs in speaking order.

use crate::support::Folder;
use worker::data::buckets::TRANSLATE_BUCKETS;
use worker::data::counts::TokenCounts;
use worker::data::dialogs::{Conversion, LineNumbers, Pair, convert};
use worker::data::digest::sha256_hex;
use worker::data::encoding::Encoding;
use worker::data::lines::Text;
use worker::data::pairs::read_pairs;

struct Side {
    types: usize,
    total: u64,
    unknown: u64,
    text: &'static str,
    vocabulary: &'static str,
    ids: &'static str,
}

struct Figures {
    begun: u64,
    gaps: u64,
    a: Side,
    b: Side,
    buckets: [usize; 4],
    dropped: u64,
}

#[test]
fn whole_line_numbers_give_the_independent_figures() {
    check(
        LineNumbers::Whole,
        &Figures {
            begun: 1000,
            gaps: 0,
            a: Side {
                types: 1739,
                total: 11_270,
                unknown: 743,
                text: "11b748f28fda7ccec56ba0703545f99feada0ff25e9bda7e5dc34ff2dd924a07",
                vocabulary: "2313e7c64e41889dfc79201bf6c111279564a7b07ad9d9cc9a4c79eea557022a",
                ids: "ee4f52936021910604093e6bdd7b11248f275783f7e04bd3f83993137d51a1bc",
            },
            b: Side {
                types: 1638,
                total: 11_055,
                unknown: 642,
                text: "f9dff16739d5f89f199266cd11b18bbab9e6c6736d7e0d962ba0696806b3901f",
                vocabulary: "0a3a0bb2f78c02f4cd5056caf10003038d6cd4f45710f1aba2e8670f942d13a6",
                ids: "3dbe4a374ca06e6544aaef3672b72b8e5ecc4949720abc26552ee374b099b1b4",
            },
            buckets: [66, 340, 459, 126],
            dropped: 9,
        },
    );
}

#[test]
fn last_digits_give_the_independent_figures() {
    check(
        LineNumbers::LastDigit,
        &Figures {
            begun: 1000,
            gaps: 200,
            a: Side {
                types: 1463,
                total: 8857,
                unknown: 467,
                text: "8ffde0bc922a84ce33a2b3749f8468902dab132ee22e2e1920599680fae0bacf",
                vocabulary: "c1d4889dc985a1654cc5229d4bc674af62d417c32d7a2a4e0890c273d2b393d4",
                ids: "925d5d3404d1aed12e50543e4ea2041cbecad029bb44ff7ff265eaa6993a5715",
            },
            b: Side {
                types: 1501,
                total: 8899,
                unknown: 505,
                text: "5816016b16d64c58e619a3691805b22c06efcf27d2f44359f7bb9275e31a0362",
                vocabulary: "93a7e20d253dbfb5477eb9a981b62bf34fc304d97f98bee6ae8f1c734aa13c84",
                ids: "a87a126563780b94861202d62bd55b62a41a68281f00c9b47461a221abc5f30c",
            },
            buckets: [50, 269, 370, 111],
            dropped: 0,
        },
    );
}

fn check(numbers: LineNumbers, figures: &Figures) {
    let path = format!("{}/assets/self-dialogue/movie_lines.txt", env!("CARGO_MANIFEST_DIR"));
    let text = Text::check(&path, std::fs::read(&path).unwrap().into(), Encoding::Utf8).unwrap();
    let Conversion { pairs, lines, begun, gaps, same_character } = convert(&text, numbers).unwrap();
    assert_eq!((lines, begun, gaps, same_character), (2000, figures.begun, figures.gaps, 0));

    let folder = Folder::new();
    let side =
        |text: fn(&Pair) -> &[u8]| pairs.iter().flat_map(|pair| [text(pair), b"\n"]).flatten().copied().collect();
    let contents: [Vec<u8>; 2] = [side(|pair| &pair.prompt), side(|pair| &pair.reply)];
    for (name, contents) in ["a", "b"].iter().zip(&contents) {
        folder.write(&format!("train.{name}"), contents);
        folder.write(&format!("test.{name}"), contents);
    }
    let prepared = folder.prepare(&folder.settings(1000)).0.unwrap();
    let made = [&prepared.train.source, &prepared.train.target];
    let vocabularies = [&prepared.source_vocabulary, &prepared.target_vocabulary];
    for (place, figures) in [&figures.a, &figures.b].into_iter().enumerate() {
        assert_eq!(sha256_hex(&contents[place]), figures.text);
        assert_eq!(vocabularies[place].digest, figures.vocabulary);
        assert_eq!(made[place].digest, figures.ids);
        assert_eq!((made[place].tokens, made[place].unknown), (figures.total, figures.unknown));
        let text = Text::check("side", contents[place].clone().into(), Encoding::Utf8).unwrap();
        let counts = TokenCounts::of(&text, &mut |_| {});
        assert_eq!((counts.types(), counts.total()), (figures.types, figures.total));
    }
    let pairs = read_pairs(&folder.storage, &prepared.train, &TRANSLATE_BUCKETS, 0, &mut |_| {}).unwrap();
    assert_eq!((pairs.sizes().as_slice(), pairs.dropped), (&figures.buckets[..], figures.dropped));
}
