//! Programs that run: shell scripts, started as the server starts them.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use poorhttp_cgi::{Fault, Head, Input, Limits, Piece, Program};

/// Only a hang is as slow as this.
const HANG: Duration = Duration::from_secs(60);

/// A limit that is meant to be reached.
const SHORT: Duration = Duration::from_millis(300);
const SHORT_SILENCE: Limits = Limits { silence: SHORT, total: None };
const UNHURRIED: Limits = Limits { silence: HANG, total: None };

struct Script {
    folder: tempfile::TempDir,
    lines: Arc<Mutex<Vec<String>>>,
    done: mpsc::Receiver<()>,
    tell: mpsc::Sender<()>,
}

impl Script {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Not by this process: what another test starts right now would have it open for a moment, and one that is open for
        // writing cannot be run.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > script", "sh", text]).current_dir(&folder);
        assert!(shell.status().unwrap().success());
        fs::set_permissions(folder.path().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        let (tell, done) = mpsc::channel();
        Script { folder, lines: Arc::default(), done, tell }
    }

    fn file(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    fn start(&self, input: Input<'_>, limits: Limits) -> Program {
        let (lines, tell) = (Arc::clone(&self.lines), self.tell.clone());
        let environment = [("PATH".into(), "/usr/bin:/bin".into()), ("ONE".into(), "1".into())];
        Program::start(
            &self.file("script"),
            environment,
            input,
            limits,
            Box::new(move |line| lines.lock().unwrap().push(line.to_owned())),
            Box::new(move || tell.send(()).unwrap()),
        )
        .unwrap()
    }

    fn run(&self) -> Program {
        self.start(Input::Nothing, UNHURRIED)
    }
}

fn head(program: &mut Program) -> Result<Head, Fault> {
    loop {
        if let Some(head) = program.head(Duration::from_millis(100))? {
            return Ok(head);
        }
    }
}

fn rest(program: &mut Program) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    loop {
        match program.piece(Duration::from_millis(100))? {
            Piece::Content(bytes) => body.extend(bytes),
            Piece::Nothing => {}
            Piece::End => return Ok(body),
        }
    }
}

fn body(program: &mut Program) -> Vec<u8> {
    head(program).unwrap();
    rest(program).unwrap()
}

fn is_alive(pid: &str) -> bool {
    // A zombie that is not reaped yet has ended, too.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn await_end(pid: &str) {
    while is_alive(pid) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_short_answer_is_whole() {
    let script = Script::new("printf 'A: b\\n\\n'; pwd; env; echo complaint >&2; exit 3");
    let mut program = script.run();
    let head = head(&mut program).unwrap();
    assert_eq!((head.status.as_deref(), head.fields), (Some("200 OK"), vec![("A".to_owned(), "b".to_owned())]));
    assert!(!rest(&mut program).unwrap().is_empty());
    assert_eq!(program.whole(), Some(Vec::new()));
    assert_eq!(program.exit_code(), Some(3));
    assert_eq!(*script.lines.lock().unwrap(), ["complaint"]);
    script.done.recv_timeout(HANG).unwrap();
}

#[test]
fn the_environment_has_only_the_given_variables() {
    let script = Script::new("printf 'A: b\\n\\n'; pwd; exec /usr/bin/env -u PWD");
    let mut program = script.run();
    let body = String::from_utf8(body(&mut program)).unwrap();
    let folder = fs::canonicalize(script.folder.path()).unwrap();
    let mut lines: Vec<_> = body.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, [folder.to_str().unwrap(), "ONE=1", "PATH=/usr/bin:/bin"]);
}

#[test]
fn bodies_of_every_size_and_kind() {
    let script = Script::new("printf 'A: b\\n\\n'; exec cat");
    let long: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    for length in [0, 1, 65_536, 65_537, long.len()] {
        let mut program = script.start(Input::Memory(&long[..length]), UNHURRIED);
        assert!(body(&mut program) == long[..length], "{length}");
    }
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&long).unwrap();
    let mut program = script.start(Input::File(file.into()), UNHURRIED);
    assert!(body(&mut program) == long);
}

#[test]
fn pieces_come_when_they_are_written() {
    let script = Script::new("mkfifo go; printf 'A: b\\n\\none'; cat go; printf two");
    let mut program = script.run();
    head(&mut program).unwrap();
    assert!(program.whole().is_none());
    assert_eq!(program.piece(HANG).unwrap(), Piece::Content(b"one".to_vec()));
    assert_eq!(program.piece(Duration::ZERO).unwrap(), Piece::Nothing);
    fs::write(script.file("go"), "").unwrap();
    assert_eq!(rest(&mut program).unwrap(), b"two");
}

#[test]
fn output_written_line_by_line_is_complete() {
    // Most of it comes while only the end is waited for, and so does the end.
    let script = Script::new(
        "echo A: b; echo; i=0; while [ $i -lt 100 ]; do echo line $i; echo complaint $i >&2; i=$((i + 1)); done",
    );
    let told = |word: &str| (0..100).map(|number| format!("{word} {number}")).collect::<Vec<_>>();
    for _ in 0..20 {
        let mut program = script.run();
        let body = String::from_utf8(body(&mut program)).unwrap();
        assert_eq!(body.lines().collect::<Vec<_>>(), told("line"));
        drop(program);
        assert_eq!(std::mem::take(&mut *script.lines.lock().unwrap()), told("complaint"));
        script.done.recv_timeout(HANG).unwrap();
    }
}

#[test]
fn the_deadline_ends_the_whole_process_group() {
    for limits in [SHORT_SILENCE, Limits { silence: HANG, total: Some(SHORT) }] {
        let script = Script::new("sleep 1000 & echo $! > child; echo $$ > self; wait");
        let mut program = script.start(Input::Nothing, limits);
        match head(&mut program) {
            Err(Fault::Silent) => assert!(limits.total.is_none()),
            Err(Fault::Late) => assert!(limits.total.is_some()),
            other => panic!("{other:?}"),
        }
        let (child, leader) =
            (fs::read_to_string(script.file("child")).unwrap(), fs::read_to_string(script.file("self")).unwrap());
        assert!(is_alive(child.trim()) && is_alive(leader.trim()));
        drop(program);
        script.done.recv_timeout(HANG).unwrap();
        assert!(!fs::exists(format!("/proc/{}", leader.trim())).unwrap(), "it was not reaped");
        await_end(child.trim());
    }
}

#[test]
fn endless_output_is_ended_by_the_total_time() {
    for stream in ["1", "2"] {
        let script = Script::new(&format!("printf 'A: b\\n\\n'; while echo x >&{stream}; do sleep 0.02; done"));
        let mut program = script.start(Input::Nothing, Limits { silence: HANG, total: Some(SHORT) });
        let fault = head(&mut program).err().or_else(|| rest(&mut program).err());
        assert!(matches!(fault, Some(Fault::Late)), "{fault:?}");
    }
}

#[test]
fn unread_output_does_not_count_as_silence() {
    let script = Script::new("printf 'A: b\\n\\nbody'; echo > wrote");
    let mut program = script.start(Input::Nothing, SHORT_SILENCE);
    while !fs::exists(script.file("wrote")).unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // It has run for longer than it may be silent.
    std::thread::sleep(SHORT + SHORT);
    assert_eq!(body(&mut program), b"body");
}

#[test]
fn a_child_that_holds_the_output_open_is_ended_too() {
    // The leader has ended, but no other process can have its number yet.
    let script = Script::new("printf 'A: b\\n\\nx'; sleep 1000 & echo $! > child");
    let mut program = script.start(Input::Nothing, SHORT_SILENCE);
    head(&mut program).unwrap();
    assert!(matches!(rest(&mut program), Err(Fault::Silent)));
    drop(program);
    await_end(fs::read_to_string(script.file("child")).unwrap().trim());
}

#[test]
fn a_program_may_continue_after_closing_its_output() {
    let script = Script::new("mkfifo go; printf 'A: b\\n\\nx'; exec >&-; cat go >&2; echo end > end; echo end >&2");
    let mut program = script.run();
    assert_eq!(body(&mut program), b"x");
    drop(program);
    assert!(script.done.try_recv().is_err());
    fs::write(script.file("go"), "").unwrap();
    script.done.recv_timeout(HANG).unwrap();
    assert_eq!(fs::read_to_string(script.file("end")).unwrap(), "end\n");
}

#[test]
fn a_program_that_has_closed_its_output_is_ended_at_its_limit() {
    let script = Script::new("echo $$ > self; printf 'A: b\\n\\nx'; exec sleep 1000 >&-");
    let mut program = script.start(Input::Nothing, SHORT_SILENCE);
    assert_eq!(body(&mut program), b"x");
    drop(program);
    script.done.recv_timeout(HANG).unwrap();
}

#[test]
fn programs_without_a_complete_answer() {
    for (text, told) in [
        ("exit 7", "it wrote no complete response head: it ended with status 7"),
        ("echo A: b", "it wrote no complete response head: it ended with status 0"),
        ("kill -SEGV $$", "it wrote no complete response head: it was killed by signal 11"),
        ("printf 'A: b\\n\\nhalf'; kill -KILL $$", "it was killed by signal 9 before its response was complete"),
        ("echo; echo body", "its head has no field"),
    ] {
        let script = Script::new(text);
        let mut program = script.run();
        let fault = head(&mut program).and_then(|_| rest(&mut program)).unwrap_err();
        assert_eq!(fault.to_string(), told, "{text}");
    }
}

#[test]
fn a_flood_on_standard_error_does_not_delay_the_answer() {
    let script = Script::new("yes complaint | head -n 500000 >&2; printf 'A: b\\n\\nx'");
    let mut program = script.run();
    assert_eq!(body(&mut program), b"x");
    drop(program);
    let lines = script.lines.lock().unwrap();
    assert!(lines.len() < 5_000 && lines[0] == "complaint", "{}", lines.len());
}

#[test]
fn programs_that_cannot_be_started() {
    let script = Script::new("");
    for (text, mode) in [("no interpreter named", 0o755), ("#!/no/such/interpreter\n", 0o755), ("#!/bin/sh\n", 0o644)] {
        fs::write(script.file("script"), text).unwrap();
        fs::set_permissions(script.file("script"), fs::Permissions::from_mode(mode)).unwrap();
        let tell = script.tell.clone();
        let started = Program::start(
            &script.file("script"),
            [],
            Input::Memory(b"body"),
            UNHURRIED,
            Box::new(|_| {}),
            Box::new(move || tell.send(()).unwrap()),
        );
        assert!(started.is_err(), "{text:?} {mode:o}");
        assert!(script.done.try_recv().is_err());
    }
}
