//! Example of an embedding: a server with a thread for each connection, which answers with what it is sent.
//!
//! `cargo run --example echo [ADDRESS]` prints its address. A request without content gets its head as text; the path `/N`
//! gets N bytes. It reads a clock for [`Connection::pass`], and it closes a connection after an hour in which nothing comes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use poorhttp_http2::{Connection, Event, Options};

/// What is still to be sent on a stream.
#[derive(Default)]
struct Answer {
    content: Vec<u8>,
    sent: usize,
    /// The request has come as a whole.
    is_complete: bool,
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:0".into());
    let listener = TcpListener::bind(address)?;
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || serve(stream));
    }
    Ok(())
}

fn serve(mut socket: TcpStream) -> io::Result<()> {
    let mut connection = Connection::new(Arc::new(Options::default()));
    let mut answers: BTreeMap<u32, Answer> = BTreeMap::new();
    let mut buffer = vec![0; 64 << 10];
    let mut last = Instant::now();
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(3600)))?;
    loop {
        while !connection.output().is_empty() {
            socket.write_all(&connection.take_output())?;
            while let Some(stream) = connection.next_writable() {
                send(&mut connection, &mut answers, stream);
            }
        }
        if connection.is_finished() {
            // The client may still be sending: its reset must not overtake what it has not read.
            socket.shutdown(std::net::Shutdown::Write)?;
            while socket.read(&mut buffer)? > 0 {}
            return Ok(());
        }
        let length = socket.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        let seconds = last.elapsed().as_secs() as u32;
        if seconds > 0 {
            connection.pass(seconds);
            last = Instant::now();
        }
        let mut bytes = &buffer[..length];
        loop {
            match connection.receive(&mut bytes) {
                Event::NeedMore | Event::Failed(_) => break,
                Event::Request(request) => {
                    let path = request.head.path().of(&request.text);
                    let number = path.strip_prefix(b"/").and_then(|path| std::str::from_utf8(path).ok()?.parse().ok());
                    let content = match number {
                        Some(length) => vec![b'a'; length],
                        None if request.has_content => Vec::new(),
                        None => request.text,
                    };
                    let is_complete = !request.has_content;
                    answers.insert(request.stream, Answer { content, sent: 0, is_complete });
                    if request.head.expects_continue {
                        let _ = connection.send_head(request.stream, 100, [], false);
                    }
                    let _ = connection.send_head(request.stream, 200, [(&b"server"[..], &b"echo"[..])], false);
                    send(&mut connection, &mut answers, request.stream);
                }
                Event::Content { stream, bytes } => {
                    if let Some(answer) = answers.get_mut(&stream) {
                        answer.content.extend_from_slice(bytes);
                    }
                    connection.consumed(stream, bytes.len() as u32);
                }
                Event::Ended { stream } => {
                    if let Some(answer) = answers.get_mut(&stream) {
                        answer.is_complete = true;
                    }
                    send(&mut connection, &mut answers, stream);
                }
                Event::Refused { stream, reject, .. } => {
                    answers.remove(&stream);
                    if connection.send_head(stream, reject.status, [], false).is_err() {
                        connection.close(stream);
                    }
                    let _ = connection.send_data(stream, b"", true);
                }
                Event::Reset { stream, .. } => {
                    answers.remove(&stream);
                    connection.close(stream);
                }
            }
        }
        while let Some(stream) = connection.next_writable() {
            send(&mut connection, &mut answers, stream);
        }
    }
}

/// Sends what it can of an answer.
fn send(connection: &mut Connection, answers: &mut BTreeMap<u32, Answer>, stream: u32) {
    let Some(answer) = answers.get_mut(&stream) else { return };
    let rest = &answer.content[answer.sent..];
    if !answer.is_complete && rest.is_empty() {
        return;
    }
    match connection.send_data(stream, rest, answer.is_complete) {
        Ok(taken) => {
            answer.sent += taken;
            if answer.is_complete && answer.sent == answer.content.len() {
                answers.remove(&stream);
            }
        }
        Err(_) => {
            answers.remove(&stream);
        }
    }
}
