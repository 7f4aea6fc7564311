//! Parser of access-log format strings: text, directives such as `%h`, and what has to be collected or timed for them.

use std::fmt::Write as _;

/// Apache's common log format.
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
/// The same with referrer and user agent.
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i""#;

/// What is known, for the messages of errors.
const KNOWN: &str = "%h %a %l %u %t %r %s %b %B %I %O %S %X %D %T %m %U %q %H %v %V %p %P %L %k %{NAME}i %{NAME}o %{NAME}e %{NAME}C \
                     %{s}T %{ms}T %{us}T %{iso}t %{sec}t %{msec}t %{instream}n %{outstream}n %{ratio}n %{id}L %{trace}L %{span}L %%";

/// A directive of a line. The letters are those of Apache's mod_log_config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
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
    Line(Vec<Directive>, Wanted),
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
        parse(line).map(|(directives, wanted)| Format::Line(directives, wanted))
    }

    /// Whether it asks how long requests took.
    pub(crate) fn times(&self) -> bool {
        match self {
            Format::Json => true,
            Format::Line(directives, _) => directives.iter().any(|directive| {
                matches!(directive, Directive::Duration | Directive::Milliseconds | Directive::Seconds)
            }),
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

fn parse(format: &str) -> Result<(Vec<Directive>, Wanted), String> {
    let (mut directives, mut wanted) = (Vec::new(), Wanted::default());
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
        let directive = match (letter, argument) {
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
                directives.push(Directive::Text(std::mem::take(&mut text) + "["));
                directives.push(Directive::Time);
                text.push(']');
                continue;
            }
            _ => directive(letter, argument, &mut wanted)?,
        };
        if !text.is_empty() {
            directives.push(Directive::Text(std::mem::take(&mut text)));
        }
        directives.push(directive);
    }
    text.push_str(rest);
    if !text.is_empty() {
        directives.push(Directive::Text(text));
    }
    Ok((directives, wanted))
}

/// Any directive but text.
fn directive(letter: char, argument: &str, wanted: &mut Wanted) -> Result<Directive, String> {
    Ok(match (letter, argument) {
        ('h' | 'a', "") => Directive::Client,
        ('u', "") => Directive::User,
        ('t', "iso") => Directive::IsoTime,
        ('t', "sec") => Directive::UnixTime,
        ('t', "msec") => Directive::UnixMilliseconds,
        ('r', "") => Directive::RequestLine,
        ('s', "") => Directive::Status,
        ('b', "") => Directive::Size { hyphen: true },
        ('B', "") | ('n', "outstream") => Directive::Size { hyphen: false },
        ('I', "") => Directive::Received,
        ('O', "") => Directive::Sent,
        ('S', "") => Directive::Transferred,
        ('X', "") => Directive::State,
        ('D', "") | ('T', "us") => Directive::Duration,
        ('T', "ms") => Directive::Milliseconds,
        ('T', "" | "s") => Directive::Seconds,
        ('n', "instream") => Directive::Uncoded,
        ('n', "ratio") => Directive::Ratio,
        ('m', "") => Directive::Method,
        ('U', "") => Directive::Path,
        ('q', "") => Directive::Query,
        ('H', "") => Directive::Protocol,
        ('v', "") => {
            wanted.server = true;
            Directive::ServerName
        }
        ('V', "") => Directive::Host,
        ('p', "") => {
            wanted.server = true;
            Directive::ServerPort
        }
        ('P', "") => Directive::Process,
        ('L', "") => Directive::Number,
        ('L', "id") => Directive::Id,
        ('L', "trace") => Directive::TraceId,
        ('L', "span") => Directive::SpanId,
        ('k', "") => Directive::Kept,
        ('i', name) if !name.is_empty() => Directive::Field(name.to_owned()),
        ('o', name) if !name.is_empty() => Directive::ResponseField(position(&mut wanted.fields, name)),
        ('e', name) if !name.is_empty() => Directive::Variable(position(&mut wanted.variables, name)),
        ('C', name) if !name.is_empty() => Directive::Cookie(name.to_owned()),
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
        let (directives, wanted) = parse("a%%b %{X}i%D%{A}o%{B}e%{C}o%{A}o").unwrap();
        assert_eq!(
            directives,
            [
                Directive::Text("a%b ".into()),
                Directive::Field("X".into()),
                Directive::Duration,
                Directive::ResponseField(0),
                Directive::Variable(0),
                Directive::ResponseField(1),
                Directive::ResponseField(0),
            ]
        );
        assert_eq!((wanted.fields, wanted.variables), (vec!["A".to_owned(), "C".to_owned()], vec!["B".to_owned()]));
        assert_eq!(parse("%l %t").unwrap().0[..2], [Directive::Text("- [".into()), Directive::Time]);
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
