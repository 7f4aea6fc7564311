//! The protocol cases of `tests/cases`, which `tests/case.py` describes. For every test that wants them:
//! `#[path = "…/http/tests/case/mod.rs"] mod case;` in another crate.

// Each of them uses a part.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Keep,
    Close,
    /// Before the last answer is complete.
    Cut,
}

/// What an application answers.
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
    /// Content of the last request, or of the last answer if the case is about that.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) answer: Option<Answer>,
}

impl Case {
    /// Whether the last message is refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.answer.is_none() && self.end == End::Close && self.statuses.last().is_some_and(|&status| status >= 400)
    }
}

const KEYS: [&str; 11] =
    ["name", "rfc", "why", "expect", "body", "environ", "send", "answer", "header", "pieces", "by"];

fn unescape(text: &str) -> String {
    let mut rest = text.chars();
    let mut unescaped = String::new();
    while let Some(character) = rest.next() {
        assert!(character.is_ascii(), "not ASCII: {text:?}");
        let escape = if character == '\\' { rest.next() } else { None };
        match (character, escape) {
            ('\\', Some('r')) => unescaped.push('\r'),
            ('\\', Some('n')) => unescaped.push('\n'),
            ('\\', Some('t')) => unescaped.push('\t'),
            ('\\', Some('\\')) => unescaped.push('\\'),
            ('\\', Some('e')) => {}
            ('\\', Some(kind @ ('x' | 'u'))) => {
                let digits: String = rest.by_ref().take(if kind == 'x' { 2 } else { 4 }).collect();
                unescaped.extend(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()));
            }
            ('\\', other) => panic!("unknown escape {other:?} in {text:?}"),
            (plain, _) => unescaped.push(plain),
        }
    }
    unescaped
}

/// The octets that `text` stands for.
pub(crate) fn octets(text: &str) -> Vec<u8> {
    unescape(text).chars().map(|character| u8::try_from(character).unwrap()).collect()
}

/// The octets of one line of a `send:` or `pieces:` block.
pub(crate) fn wire(line: &str) -> Vec<u8> {
    match line.split_once(" * ").map(|(times, text)| (times.parse::<usize>(), text)) {
        Some((Ok(times), text)) => octets(text).repeat(times),
        _ => octets(line),
    }
}

fn answer(block: &Block<'_>) -> Option<Answer> {
    let lines = |key: &str| block.get(key).cloned().unwrap_or_default();
    let field = |line: &str| line.split_once(": ").map(|(name, value)| (unescape(name), unescape(value))).unwrap();
    let by = lines("by").first().copied().unwrap_or("list generator write");
    Some(Answer {
        status: unescape(&block.get("answer")?.concat()),
        fields: lines("header").into_iter().map(field).collect(),
        pieces: lines("pieces").into_iter().map(wire).collect(),
        ways: by.split(' ').map(str::to_owned).collect(),
    })
}

fn case(block: &Block<'_>) -> Case {
    let name = block["name"][0].to_owned();
    let mut expect: Vec<&str> = block["expect"][0].split_whitespace().collect();
    let end = match expect.pop() {
        Some("keep") => End::Keep,
        Some("close") => End::Close,
        Some("cut") => End::Cut,
        other => panic!("{name}: expect ends with {other:?}"),
    };
    Case {
        send: block["send"].iter().flat_map(|line| wire(line)).collect(),
        statuses: expect.iter().map(|status| status.trim_start_matches("HEAD:").parse().unwrap()).collect(),
        end,
        body: block.get("body").map(|lines| lines.iter().flat_map(|line| wire(line)).collect()),
        answer: answer(block),
        name,
    }
}

/// Lines of a case: for each key the text behind it and below it.
pub(crate) type Block<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The blocks of a file.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut block = Block::new();
    let mut key = "";
    for line in text.lines().chain([""]).filter(|line| !line.starts_with('#')) {
        if line.is_empty() {
            blocks.extend(Some(std::mem::take(&mut block)).filter(|block| !block.is_empty()));
        } else if let Some(indented) = line.strip_prefix("    ") {
            block.get_mut(key).unwrap().push(indented);
        } else {
            let (name, rest) = line.split_once(':').unwrap();
            key = name;
            let first = Some(rest.trim()).filter(|rest| !rest.is_empty());
            assert!(block.insert(key, first.into_iter().collect()).is_none(), "{line:?} a second time");
        }
    }
    blocks
}

fn read(text: &str) -> Vec<Case> {
    // An interpreter is a thousand times slower: Miri sees the first cases of each file.
    let most = if cfg!(miri) { 8 } else { usize::MAX };
    let known = |block: &Block<'_>| {
        assert!(block.keys().all(|key| KEYS.contains(key)), "not a case: {block:?}");
        case(block)
    };
    blocks(text).iter().take(most).map(known).collect()
}

fn read_all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let cases: Vec<Case> = paths.iter().flat_map(|path| read(&fs::read_to_string(path).unwrap())).collect();
    assert!(cfg!(miri) || cases.len() > 700, "only {} cases were found", cases.len());
    cases
}

/// The cases about what a client sends.
pub(crate) fn requests() -> Vec<Case> {
    read_all().into_iter().filter(|case| case.answer.is_none()).collect()
}

/// The cases about what an application answers.
pub(crate) fn answers() -> Vec<Case> {
    read_all().into_iter().filter(|case| case.answer.is_some()).collect()
}
