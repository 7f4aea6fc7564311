//! Reader of the protocol cases in `tests/cases`, and of all case files.
//!
//! Tests of other crates include it by `#[path = "…/http/tests/case/mod.rs"] mod case;`.

// Each test uses a part.
#![allow(dead_code)]

mod blocks;

use std::fs;
use std::path::Path;

#[allow(unused_imports)]
pub(crate) use blocks::{Block, Pair, blocks, bytes, encode_latin1};

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Keep,
    Close,
    /// The connection ends before the last response is complete.
    Cut,
}

/// The response of an application.
pub(crate) struct Answer {
    pub(crate) status: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    /// `list`, `generator`, `write`.
    pub(crate) ways: Vec<String>,
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) send: Vec<u8>,
    pub(crate) statuses: Vec<u16>,
    pub(crate) end: End,
    /// Content of the last request, or of the last response if the case is about it.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) answer: Option<Answer>,
}

impl Case {
    /// Whether the last message is refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.answer.is_none() && self.end == End::Close && self.statuses.last().is_some_and(|&status| status >= 400)
    }
}

fn answer(block: &Block) -> Option<Answer> {
    let field = |(name, value): Pair| (name, value.unwrap());
    let ways = ["list", "generator", "write"].map(str::to_owned).to_vec();
    Some(Answer {
        status: block.get_lines("answer")?.concat(),
        fields: block.pairs("header").into_iter().map(field).collect(),
        pieces: block.lines("pieces").iter().map(|piece| encode_latin1(piece).unwrap()).collect(),
        ways: block.get_words("by").unwrap_or(ways),
    })
}

fn case(block: &Block) -> Case {
    let name = block.text("name");
    let mut expect = block.words("expect");
    let end = match expect.pop().as_deref() {
        Some("keep") => End::Keep,
        Some("close") => End::Close,
        Some("cut") => End::Cut,
        other => panic!("{name}: expect ends with {other:?}"),
    };
    Case {
        send: block.bytes("send"),
        statuses: expect.iter().map(|status| status.trim_start_matches("HEAD:").parse().unwrap()).collect(),
        end,
        body: block.get_bytes("body"),
        answer: answer(block),
        name,
    }
}

fn read_all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let texts = paths.iter().map(|path| (path.to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()));
    let texts: Vec<(String, String)> = texts.collect();
    // Miri is a thousand times slower: it reads the first cases of each file.
    let most = if cfg!(miri) { 8 } else { usize::MAX };
    let files = texts.iter().map(|(path, text)| (&path[..], &text[..]));
    let cases: Vec<Case> = blocks(files, &["exchange"], most).iter().map(case).collect();
    assert!(cfg!(miri) || cases.len() > 700, "only {} cases were found", cases.len());
    cases
}

/// The cases about requests.
pub(crate) fn requests() -> Vec<Case> {
    read_all().into_iter().filter(|case| case.answer.is_none()).collect()
}

/// The cases about responses.
pub(crate) fn answers() -> Vec<Case> {
    read_all().into_iter().filter(|case| case.answer.is_some()).collect()
}
