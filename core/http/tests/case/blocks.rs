//! Reader of test case files, checked against their schema in `tests/cases/schema`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const SCHEMA: &str = include_str!("../../../../tests/cases/schema");

/// A name and its value; `None`: it must be absent.
pub(crate) type Pair = (String, Option<String>);

/// A parsed value.
enum Value {
    Text(String),
    Words(Vec<String>),
    Number(i64),
    Lines(Vec<String>),
    Bytes(Vec<u8>),
    Pairs(Vec<Pair>),
}

/// A block of a file.
pub(crate) struct Block {
    /// File and line, for messages.
    place: String,
    pub(crate) kind: &'static str,
    values: BTreeMap<String, Value>,
}

macro_rules! get {
    ($name:ident, $get:ident, $variant:ident, $type:ty) => {
        /// The value of a key, if it is present.
        pub(crate) fn $get(&self, key: &str) -> Option<$type> {
            match self.values.get(key) {
                Some(Value::$variant(value)) => Some(value.clone()),
                Some(_) => panic!("{}: {key} is of another type", self.place),
                None => None,
            }
        }

        /// The value of a key, or an empty one.
        pub(crate) fn $name(&self, key: &str) -> $type {
            self.$get(key).unwrap_or_default()
        }
    };
}

impl Block {
    get!(text, get_text, Text, String);
    get!(words, get_words, Words, Vec<String>);
    get!(number, get_number, Number, i64);
    get!(lines, get_lines, Lines, Vec<String>);
    get!(bytes, get_bytes, Bytes, Vec<u8>);
    get!(pairs, get_pairs, Pairs, Vec<Pair>);

    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }
}

/// A kind of block: its keys with their types. The first required key identifies the kind.
struct Kind {
    name: &'static str,
    required: Vec<(&'static str, &'static str)>,
    optional: Vec<(&'static str, &'static str)>,
}

/// Lines of a block: for each key the text after and below it.
type Lines<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The blocks of a file, with the numbers of their first lines.
fn split<'a>(file: &str, text: &'a str) -> Vec<(usize, Lines<'a>)> {
    let mut blocks = Vec::new();
    let (mut block, mut key, mut start) = (Lines::new(), "", 0);
    for (number, line) in text.lines().chain([""]).enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let place = || format!("{file}:{}: {line:?}", number + 1);
        assert!(line.is_ascii(), "{}: not ASCII", place());
        if line.is_empty() {
            blocks.extend(Some((start, std::mem::take(&mut block))).filter(|(_, block)| !block.is_empty()));
        } else if let Some(indented) = line.strip_prefix("    ") {
            block.get_mut(key).unwrap_or_else(|| panic!("{} has no key", place())).push(indented);
        } else {
            start = if block.is_empty() { number + 1 } else { start };
            let (name, rest) = line.split_once(':').unwrap_or_else(|| panic!("{} is no key", place()));
            key = name;
            let first = Some(rest.trim()).filter(|rest| !rest.is_empty());
            assert!(block.insert(key, first.into_iter().collect()).is_none(), "{} a second time", place());
        }
    }
    blocks
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let types = |lines: Option<&Vec<&'static str>>| {
        let keys = lines.into_iter().flatten().filter(|line| !line.starts_with(' '));
        let key = |line: &&'static str| line.split_once(": ").map(|(key, text)| (key, text.split(' ').next().unwrap()));
        keys.filter_map(key).collect()
    };
    let kind = |(_, block): (usize, Lines<'static>)| Kind {
        name: block["kind"][0],
        required: types(block.get("required")),
        optional: types(block.get("optional")),
    };
    split("schema", SCHEMA).into_iter().map(kind).collect()
});

/// The blocks of files, given by name and text, at most `most` of each. Panics for an unknown kind or a repeated name.
pub(crate) fn blocks<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    kinds: &[&str],
    most: usize,
) -> Vec<Block> {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| kinds.contains(&kind.name)).collect();
    let mut names = BTreeSet::new();
    let mut blocks = Vec::new();
    for (file, text) in files {
        for (line, lines) in split(file, text).into_iter().take(most) {
            let place = format!("{file}:{line}");
            let mut found = kinds.iter().filter(|kind| lines.contains_key(kind.required[0].0));
            let (Some(kind), None) = (found.next(), found.next()) else { panic!("{place}: of which kind is it?") };
            let name = lines.get("name").map_or(String::new(), |name| name.concat());
            assert!(name.is_empty() || names.insert(name.clone()), "{place}: {name} a second time");
            let values = values(kind, &lines).unwrap_or_else(|fault| panic!("{place}: {fault}"));
            blocks.push(Block { place, kind: kind.name, values });
        }
    }
    blocks
}

fn values(kind: &Kind, lines: &Lines<'_>) -> Result<BTreeMap<String, Value>, String> {
    if let Some((key, _)) = kind.required.iter().find(|(key, _)| !lines.contains_key(key)) {
        return Err(format!("without {key}"));
    }
    let value = |(&key, lines): (&&str, &Vec<&str>)| {
        let known = kind.required.iter().chain(&kind.optional).find(|(known, _)| *known == key);
        let (_, kind_of_value) = known.ok_or(format!("unknown key {key}"))?;
        let value = value(kind_of_value, lines).map_err(|fault| format!("{key}: {fault}"))?;
        match &value {
            Value::Text(text) if text.is_empty() && kind.required.iter().any(|(known, _)| *known == key) => {
                Err(format!("nothing behind {key}"))
            }
            _ => Ok((key.to_owned(), value)),
        }
    };
    lines.iter().map(value).collect()
}

/// Parses lines as a value of this type.
fn value(kind: &str, lines: &[&str]) -> Result<Value, String> {
    let text = lines.join(" ");
    let repeated = || lines.iter().map(|line| repeated(line)).collect::<Result<Vec<String>, String>>();
    let number = |radix: u32| i64::from_str_radix(&text, radix).map_err(|error| error.to_string());
    Ok(match kind {
        "text" => Value::Text(text),
        "words" => Value::Words(text.split_whitespace().map(unescape).collect::<Result<_, _>>()?),
        "number" => Value::Number(number(10)?),
        "octal" => Value::Number(number(8)?),
        "lines" => Value::Lines(repeated()?),
        "bytes" => Value::Bytes(encode_latin1(&repeated()?.concat())?),
        "hex" => {
            let digits: Vec<char> = text.chars().filter(|digit| *digit != ' ').collect();
            let byte =
                |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).map_err(|error| error.to_string());
            Value::Bytes(digits.chunks(2).map(byte).collect::<Result<_, _>>()?)
        }
        "pairs" => Value::Pairs(lines.iter().map(|line| pairs(line)).collect::<Result<Vec<_>, _>>()?.concat()),
        other => return Err(format!("unknown type {other}")),
    })
}

/// A line of pairs: one, or repetitions of one.
fn pairs(line: &str) -> Result<Vec<Pair>, String> {
    let (times, text) = repetition(line).unwrap_or((1, line));
    if let Some((name, value)) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, ""))) {
        return Ok(vec![(unescape(name)?, Some(repeated(value)?)); times]);
    }
    let name = text.strip_prefix("not ").ok_or(format!("neither `name: value` nor `not name`: {line:?}"))?;
    Ok(vec![(unescape(name)?, None)])
}

/// Text and count of a repetition, written `N * text`.
fn repetition(text: &str) -> Option<(usize, &str)> {
    let (times, text) = text.split_once(" * ")?;
    Some((times.parse().ok()?, text))
}

fn repeated(text: &str) -> Result<String, String> {
    let (times, text) = repetition(text).unwrap_or((1, text));
    Ok(unescape(text)?.repeat(times))
}

/// Replaces the escapes in `text`.
fn unescape(text: &str) -> Result<String, String> {
    let mut rest = text.chars();
    let mut unescaped = String::new();
    while let Some(character) = rest.next() {
        let escape = if character == '\\' { rest.next() } else { None };
        match (character, escape) {
            ('\\', Some('r')) => unescaped.push('\r'),
            ('\\', Some('n')) => unescaped.push('\n'),
            ('\\', Some('t')) => unescaped.push('\t'),
            ('\\', Some('\\')) => unescaped.push('\\'),
            ('\\', Some('e')) => {}
            ('\\', Some(kind @ ('x' | 'u'))) => {
                let digits: String = rest.by_ref().take(if kind == 'x' { 2 } else { 4 }).collect();
                let number = u32::from_str_radix(&digits, 16).map_err(|error| format!("{error}: {text:?}"))?;
                unescaped.extend(char::from_u32(number));
            }
            ('\\', other) => return Err(format!("unknown escape {other:?} in {text:?}")),
            (plain, _) => unescaped.push(plain),
        }
    }
    Ok(unescaped)
}

/// Characters as bytes.
pub(crate) fn encode_latin1(text: &str) -> Result<Vec<u8>, String> {
    text.chars().map(|character| u8::try_from(character).map_err(|_| format!("not Latin-1: {text:?}"))).collect()
}

/// The bytes of `text` with escapes.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    unescape(text).and_then(|text| encode_latin1(&text)).unwrap()
}
