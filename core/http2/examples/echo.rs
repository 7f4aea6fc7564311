//! Example of an embedding: a server with a thread for each connection, which answers with what it is sent.
//!
//! `cargo run --example echo [ADDRESS]` prints its address. `h2spec`, curl and h2load can be pointed at it.

#[path = "../tests/echo/mod.rs"]
mod echo;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use echo::Echo;
use poorhttp_http2::Options;

/// A connection on which nothing comes for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:0".into());
    let listener = TcpListener::bind(address)?;
    println!("{}", listener.local_addr()?);
    for socket in listener.incoming() {
        let socket = socket?;
        thread::spawn(move || serve(socket));
    }
    Ok(())
}

fn serve(mut socket: TcpStream) -> io::Result<()> {
    let mut echo = Echo::new(Options::default());
    let mut buffer = vec![0; 64 << 10];
    let mut last = Instant::now();
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(IDLE))?;
    loop {
        loop {
            let output = echo.output();
            if output.is_empty() {
                break;
            }
            socket.write_all(&output)?;
        }
        if echo.connection.is_finished() {
            // The client may still be sending, and a reset of TCP must not overtake what it has not read.
            socket.shutdown(Shutdown::Write)?;
            while socket.read(&mut buffer)? > 0 {}
            return Ok(());
        }
        let length = socket.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        let seconds = last.elapsed().as_secs() as u32;
        if seconds > 0 {
            echo.connection.pass(seconds);
            last = Instant::now();
        }
        echo.receive(&buffer[..length]);
    }
}
