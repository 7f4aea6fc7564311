//! Parser of access-log format strings: text and directives such as `%h`.

use std::fmt::Write as _;

/// Apache's common log format.
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
/// The same with referrer and user agent.
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i""#;

/// What is known, for the messages of errors.
const KNOWN: &str = "%h %a %l %u %t %r %s %b %B %I %O %S %X %D %T %m %U %q %H %v %V %p %P %L %k %{NAME}i %{NAME}o %{NAME}e %{NAME}C \
                     %{s}T %{ms}T %{us}T %{iso}t %{sec}t %{msec}t %{instream}n %{outstream}n %{ratio}n %{id}L %{trace}L %{span}L %%";

/// A piece of a line. The letters are those of Apache's mod_log_config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// `%h` and `%a`
    Client,
    /// `%u`: from the field Authorization, or from the web server
    User,
    /// `%t`, without its brackets
    Time,
    /// `%{iso}t`
    IsoTime,
    /// `%{sec}t`: seconds since 1970
    UnixTime,
    /// `%{msec}t`: milliseconds since 1970
    UnixMilliseconds,
    /// `%r`
    RequestLine,
    /// `%s`
    Status,
    /// `%b` (a hyphen for nothing) and `%B`
    Size {
        hyphen: bool,
    },
    /// `%I`
    Received,
    /// `%O`
    Sent,
    /// `%S`: both
    Transferred,
    /// `%X`
    State,
    /// `%{NAME}i`
    Field(String),
    /// `%{NAME}o`: position in [`Wanted::fields`]
    ResponseField(usize),
    /// `%{NAME}e`: position in [`Wanted::variables`]
    Variable(usize),
    /// `%{NAME}C`
    Cookie(String),
    /// `%D` and `%{us}T`, in microseconds
    Duration,
    /// `%{ms}T`
    Milliseconds,
    /// `%T`, in seconds
    Seconds,
    /// `%{instream}n`: bytes of content before it was compressed
    Uncoded,
    /// `%{ratio}n`: bytes of content for each hundred before it was compressed
    Ratio,
    /// `%m`
    Method,
    /// `%U`
    Path,
    /// `%q`
    Query,
    /// `%H`
    Protocol,
    /// `%v`
    ServerName,
    /// `%V`: the host that the client has asked for
    Host,
    /// `%p`
    ServerPort,
    /// `%P`
    Process,
    /// `%L`: the running number of the request, in its worker
    Number,
    /// `%{id}L`
    Id,
    /// `%{trace}L`
    TraceId,
    /// `%{span}L`
    SpanId,
    /// `%k`: requests on this connection before this one
    Kept,
}

/// What a format asks for that is not known any more when a response has been sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Names of response fields.
    pub(crate) fields: Vec<String>,
    /// Keys of the environ.
    pub(crate) variables: Vec<String>,
    /// Name and port of the server.
    pub(crate) server: bool,
}

/// A format that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Line(Vec<Piece>, Wanted),
    Json,
}

impl Format {
    /// Reads the name of a format, or a format string. The error is worded for the person who wrote it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let line = match text {
            "json" => return Ok(Format::Json),
            "common" => COMMON,
            "combined" => COMBINED,
            line => line,
        };
        parse(line).map(|(pieces, wanted)| Format::Line(pieces, wanted))
    }

    /// Whether it asks how long requests took.
    pub(crate) fn times(&self) -> bool {
        match self {
            Format::Json => true,
            Format::Line(pieces, _) => {
                pieces.iter().any(|piece| matches!(piece, Piece::Duration | Piece::Milliseconds | Piece::Seconds))
            }
        }
    }

    /// What has to be collected for it; none if nothing is.
    pub(crate) fn wanted(&self) -> Option<&Wanted> {
        match self {
            Format::Json => None,
            Format::Line(_, wanted) => Some(wanted).filter(|wanted| **wanted != Wanted::default()),
        }
    }
}

/// The position of a name in a list, to which it is added if it is new.
fn position(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

fn parse(format: &str) -> Result<(Vec<Piece>, Wanted), String> {
    let (mut pieces, mut wanted) = (Vec::new(), Wanted::default());
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if after.starts_with('(') {
            return Err(gunicorn(format));
        }
        // Apache's `%>s` asks for the last status of several; there is only one here.
        let after = after.strip_prefix('>').unwrap_or(after);
        let (argument, after) = match after.strip_prefix('{') {
            Some(inner) => inner.split_once('}').ok_or_else(|| format!("'%{after}': no closing brace"))?,
            None => ("", after),
        };
        let mut letters = after.chars();
        let letter = letters.next().ok_or("a % at the end; write %% for a percent sign")?;
        rest = letters.as_str();
        let piece = match (letter, argument) {
            ('%', "") => {
                text.push('%');
                continue;
            }
            // No client says that (RFC 1413).
            ('l', "") => {
                text.push('-');
                continue;
            }
            ('t', "") => {
                pieces.push(Piece::Text(std::mem::take(&mut text) + "["));
                pieces.push(Piece::Time);
                text.push(']');
                continue;
            }
            _ => piece(letter, argument, &mut wanted)?,
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece);
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok((pieces, wanted))
}

/// The piece of a directive, which is more than text.
fn piece(letter: char, argument: &str, wanted: &mut Wanted) -> Result<Piece, String> {
    Ok(match (letter, argument) {
        ('h' | 'a', "") => Piece::Client,
        ('u', "") => Piece::User,
        ('t', "iso") => Piece::IsoTime,
        ('t', "sec") => Piece::UnixTime,
        ('t', "msec") => Piece::UnixMilliseconds,
        ('r', "") => Piece::RequestLine,
        ('s', "") => Piece::Status,
        ('b', "") => Piece::Size { hyphen: true },
        ('B', "") | ('n', "outstream") => Piece::Size { hyphen: false },
        ('I', "") => Piece::Received,
        ('O', "") => Piece::Sent,
        ('S', "") => Piece::Transferred,
        ('X', "") => Piece::State,
        ('D', "") | ('T', "us") => Piece::Duration,
        ('T', "ms") => Piece::Milliseconds,
        ('T', "" | "s") => Piece::Seconds,
        ('n', "instream") => Piece::Uncoded,
        ('n', "ratio") => Piece::Ratio,
        ('m', "") => Piece::Method,
        ('U', "") => Piece::Path,
        ('q', "") => Piece::Query,
        ('H', "") => Piece::Protocol,
        ('v', "") => {
            wanted.server = true;
            Piece::ServerName
        }
        ('V', "") => Piece::Host,
        ('p', "") => {
            wanted.server = true;
            Piece::ServerPort
        }
        ('P', "") => Piece::Process,
        ('L', "") => Piece::Number,
        ('L', "id") => Piece::Id,
        ('L', "trace") => Piece::TraceId,
        ('L', "span") => Piece::SpanId,
        ('k', "") => Piece::Kept,
        ('i', name) if !name.is_empty() => Piece::Field(name.to_owned()),
        ('o', name) if !name.is_empty() => Piece::ResponseField(position(&mut wanted.fields, name)),
        ('e', name) if !name.is_empty() => Piece::Variable(position(&mut wanted.variables, name)),
        ('C', name) if !name.is_empty() => Piece::Cookie(name.to_owned()),
        ('i' | 'o' | 'e' | 'C', _) => return Err(format!("%{letter} needs a name; write %{{NAME}}{letter}")),
        (_, "") => return Err(format!("%{letter} is not known; known are {KNOWN}")),
        _ => return Err(format!("%{{{argument}}}{letter} is not known; known are {KNOWN}")),
    })
}

/// The error for a format of gunicorn, in which directives are written `%(h)s`: the same format as it is written here.
fn gunicorn(format: &str) -> String {
    let mut ours = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("%(") {
        let (name, behind) = after.split_once(')').unwrap_or((after, ""));
        ours.push_str(before);
        let _ = match name {
            "f" => write!(ours, "%{{Referer}}i"),
            "a" => write!(ours, "%{{User-Agent}}i"),
            "M" => write!(ours, "%{{ms}}T"),
            "L" => write!(ours, "%D"),
            _ => write!(ours, "%{name}"),
        };
        rest = behind.strip_prefix('s').unwrap_or(behind);
    }
    ours.push_str(rest);
    format!("%(…)s is how gunicorn writes directives; here the format is: {ours}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed_or_the_error_explains_why_not() {
        let (pieces, wanted) = parse("a%%b %{X}i%D%{A}o%{B}e%{C}o%{A}o").unwrap();
        assert_eq!(
            pieces,
            [
                Piece::Text("a%b ".into()),
                Piece::Field("X".into()),
                Piece::Duration,
                Piece::ResponseField(0),
                Piece::Variable(0),
                Piece::ResponseField(1),
                Piece::ResponseField(0),
            ]
        );
        assert_eq!((wanted.fields, wanted.variables), (vec!["A".to_owned(), "C".to_owned()], vec!["B".to_owned()]));
        assert_eq!(parse("%l %t").unwrap().0[..2], [Piece::Text("- [".into()), Piece::Time]);
        for (format, complaint) in [
            ("%y", "%y is not known"),
            ("%", "at the end"),
            ("%{X", "brace"),
            ("%{X}s", "%{X}s is not known"),
            ("%{min}T", "%{ms}T"),
            ("%i", "write %{NAME}i"),
            (r#"%(h)s "%(r)s" %(s)s %({x-a}i)s %(a)s"#, r#"is: %h "%r" %s %{x-a}i %{User-Agent}i"#),
        ] {
            let error = parse(format).unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn common_formats_collect_nothing() {
        for format in ["common", "combined", "json", "%h %D"] {
            assert_eq!(Format::read(format).unwrap().wanted(), None, "{format}");
        }
        assert!(Format::read("%p").unwrap().wanted().is_some());
    }
}
