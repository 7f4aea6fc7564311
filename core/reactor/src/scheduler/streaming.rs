//! Watches responses that stream, and has other threads serve in the place of theirs.
//!
//! A thread of its own does that, four times a second as long as there are responses in pieces, and for some seconds more.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crate::log::error::Level;
use crate::overload::streaming::{MayLeave, Response, Streamed, Streaming, Usage};
use crate::scheduler::state::State;
use crate::scheduler::threads;
use crate::sys::{clock, process};

/// Interval at which responses are looked at.
const TICK: Duration = Duration::from_millis(250);

/// Ticks without a response after which the thread ends. To start another one for each would cost more.
const IDLE_TICKS: u32 = 20;

/// This thread has sent the first piece of a response at `begun`, in microseconds of [`clock::precise_us`].
pub(crate) fn begin(state: &Arc<State>, streaming: &Arc<Streaming>, number: u64, begun: u64) -> Streamed {
    let (streamed, is_first) = streaming.begin(number, threads::this_thread(), begun);
    if is_first {
        let weak = Arc::downgrade(state);
        if let Err(error) = thread::Builder::new().name("poorhttp-streams".to_owned()).spawn(move || watch(&weak)) {
            streaming.end_watch();
            if streaming.takes_message(begun) {
                state.log(Level::Error, &format!("responses that stream keep threads of the pool: {error}"));
            }
        }
    }
    streamed
}

fn watch(weak: &Weak<State>) {
    let mut idle = 0;
    loop {
        thread::sleep(TICK);
        let Some(state) = weak.upgrade() else { return };
        let Some(streaming) = &state.streaming else { return };
        let responses = streaming.responses();
        idle = if responses.is_empty() { idle + 1 } else { 0 };
        if idle >= IDLE_TICKS && streaming.end_watch_if_empty() {
            return;
        }
        look_at(&state, streaming, &responses);
    }
}

fn look_at(state: &State, streaming: &Streaming, responses: &[Arc<Response>]) {
    let in_pool: Vec<_> = responses.iter().filter(|response| response.is_in_pool()).collect();
    let running = in_pool.len().max(state.counters.counts().in_flight as usize);
    for response in in_pool {
        let usage = || Usage {
            at: clock::precise_us(),
            wanted: process::wanted_time(response.thread_id),
            process: clock::processor_time_us(),
        };
        match streaming.may_leave(response, running, usage) {
            MayLeave::Yes => leave(state, streaming, response),
            MayLeave::TooMany if streaming.most > 0 && streaming.takes_message(clock::precise_us()) => {
                let most = streaming.most;
                let plural = if most == 1 { "response has a thread" } else { "responses have threads" };
                state.log(
                    Level::Warning,
                    &format!(
                        "{most} {plural} beside the pool, which is the most (streaming_threads = {most}): \
                         further responses that stream keep threads of the pool"
                    ),
                );
            }
            MayLeave::TooMany | MayLeave::No => {}
        }
    }
}

/// Has another thread serve in the place of that of a response.
fn leave(state: &State, streaming: &Streaming, response: &Response) {
    match streaming.leave(response) {
        Some(true) => threads::hand_on(state, response.thread),
        Some(false) => {}
        None if streaming.takes_message(clock::precise_us()) => {
            let text = "no thread can be started: responses that stream keep threads of the pool (streaming_threads)";
            state.log(Level::Error, text);
        }
        None => {}
    }
}
