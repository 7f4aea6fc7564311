//! The table of connections, the queue of those that are ready, and spare buffers.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::connection::Connection;
use crate::connection::request::Buffers;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::Phase;
use crate::scheduler::timers::Deadline;
use crate::sys::clock;
use crate::sys::poller::GENERATIONS;

/// Bytes of spare buffers that are kept: 64 of the usual size.
const SPARE: usize = 1 << 20;

/// While requests wait, a step of a handshake is made before so many of them: neither keeps the others waiting for ever.
const REQUESTS_PER_STEP: u32 = 16;
/// The same in microseconds, for requests that take longer than a step. 16 short requests take less.
const STEP_AFTER: u64 = 1_000;
/// As many turns as there are before the poller is asked again: requests that arrive during a step come before the next one.
const TURNS_OF_STEP: u32 = 256;

/// Events of a connection since it was put back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) hangup: bool,
    /// Its deadline has passed.
    pub(crate) expired: bool,
}

/// So often the streams of a connection let others go first, whenever one of them has been taken: a new connection needs a turn to
/// say that it has streams, and another one for its first request.
const LET_BY: u32 = 2;

/// Microseconds for which a connection keeps its turn while its streams are answered at once and none without streams waits: their
/// responses are sent together.
const KEPT: u64 = 100;

/// Microseconds for which streams are taken without asking the poller who else has come. To ask costs less than a hundredth of it.
const PASSING: u64 = 250;

/// In place of the slot that has the streams of a slot: it has none, because it is no stream.
const NO_STREAM: u32 = u32::MAX;
/// Marks an entry of the ready queue that is the turn of one of the streams of a connection.
const STREAMS: u32 = 1 << 31;
/// Marks one that is the turn of such a connection itself, which is read.
const READS: u32 = 1 << 30;

/// The place of one connection in the table.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) generation: u32,
    /// It is in the queue.
    queued: bool,
    /// The slot of its connection, if it is a stream.
    parent: u32,
    pub(crate) readiness: Readiness,
    pub(crate) deadline: Deadline,
    /// The socket, which can be used while another thread has the connection.
    pub(crate) socket: Option<Arc<SharedSocket>>,
    /// The connection, unless a thread has it: to read it, or with the request that it carries.
    pub(crate) connection: Option<Box<Connection>>,
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            generation: 0,
            queued: false,
            parent: NO_STREAM,
            readiness: Readiness::default(),
            deadline: Deadline::default(),
            socket: None,
            connection: None,
        }
    }
}

/// When a connection that is put back is handled next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// When something happens.
    No,
    /// Before all others.
    AtOnce,
    /// Behind all others.
    InTurn,
}

/// The stream that was taken last.
#[derive(Debug, Default)]
struct LastStream {
    /// The entry of its connection in the queue.
    entry: u32,
    /// Its index and generation.
    slot: (u32, u32),
    /// How often another entry was taken before the next of its streams.
    passed: u32,
    /// The entry is at the front, until this time in microseconds of [`clock::precise_us`]; 0: it is not.
    keeps_until: u64,
}

/// All connections. A slot is used again with another generation, so events of its last connection are recognised.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    /// Slots of streams.
    streams: usize,
    /// Connections that are ready: to be handled in this order. An entry with [`STREAMS`] is the turn of a stream of this
    /// connection: its streams share one, so that they do not come before those that are ready on other connections.
    ready: VecDeque<u32>,
    /// Those of them that are marked.
    marked: usize,
    /// Streams that are ready, by the slot of their connection.
    ready_streams: HashMap<u32, VecDeque<u32>, FxBuildHasher>,
    /// Those of them for which the queue has no entry, because it has one for another of the same connection.
    behind: usize,
    last_stream: LastStream,
    /// When the next stream was to be taken first after the poller was asked, in microseconds of [`clock::precise_us`]; 0: none was.
    streams_since: u64,
    /// Those whose TLS handshake goes on: behind the others, because a step takes as long as many requests.
    handshakes: VecDeque<u32>,
    /// Turns of others since the last step of a handshake, while one waited; and when the first of them began.
    before_step: (u32, u64),
    /// Connections taken since the poller was last asked for events.
    turns: u32,
    // Boxed, because they move between here and the connections all the time.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Buffers>>,
    /// Bytes of the spare buffers.
    spare_bytes: usize,
}

impl Connections {
    /// Takes a slot; returns its index and generation.
    pub(crate) fn occupy(&mut self, socket: Arc<SharedSocket>) -> (u32, u32) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        (index, slot.generation)
    }

    /// The same for a stream, which does not count as a connection.
    pub(crate) fn occupy_stream(&mut self, socket: Arc<SharedSocket>, parent: u32) -> (u32, u32) {
        let (index, generation) = self.occupy(socket);
        self.slots[index as usize].parent = parent;
        self.streams += 1;
        (index, generation)
    }

    /// Gives a slot back.
    pub(crate) fn vacate(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let generation = (slot.generation + 1) % GENERATIONS;
        self.streams -= usize::from(slot.parent != NO_STREAM);
        *slot = Slot { generation, ..Slot::default() };
        self.vacant.push(index);
    }

    /// The slot of a live connection, for its owner.
    #[inline]
    pub(crate) fn of(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The slot, if it still belongs to the same connection.
    #[inline]
    pub(crate) fn get(&mut self, index: u32, generation: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize).filter(|slot| slot.generation == generation && slot.socket.is_some())
    }

    /// Connections that are open.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.vacant.len() - self.streams
    }

    /// Every slot with a connection.
    pub(crate) fn occupied(&mut self) -> impl Iterator<Item = (u32, &mut Slot)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter(|(_, slot)| slot.socket.is_some())
            .map(|(index, slot)| (index as u32, slot))
    }

    /// Connections that are ready.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.ready.len() + self.handshakes.len() + self.behind
    }

    /// Connections taken since [`Connections::start_round`].
    #[inline]
    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    /// The poller was asked for events.
    pub(crate) fn start_round(&mut self) {
        (self.turns, self.streams_since) = (0, 0);
    }

    /// Whether the next turn is that of a stream although requests of others may have come since streams were there: the poller must
    /// be asked before.
    #[inline]
    pub(crate) fn may_pass_others(&self) -> bool {
        self.streams_since != 0 && self.ready.front().is_some_and(|entry| entry & STREAMS != 0) && self.is_late()
    }

    #[cold]
    fn is_late(&self) -> bool {
        clock::precise_us() > self.streams_since + PASSING
    }

    /// Streams are ready, or have had a turn, since the poller was asked.
    #[cold]
    fn note_streams(&mut self) {
        if self.streams_since == 0 {
            self.streams_since = clock::precise_us();
        }
    }

    /// Counts a turn of a connection that took as long as `turns` others.
    pub(crate) fn add_turns(&mut self, turns: u32) {
        self.turns = self.turns.saturating_add(turns);
    }

    /// Takes the next connection that is ready.
    #[inline]
    pub(crate) fn take_ready(&mut self) -> Option<Box<Connection>> {
        loop {
            let is_step = !self.handshakes.is_empty() && (self.ready.is_empty() || self.is_step_due());
            let queue = if is_step { &mut self.handshakes } else { &mut self.ready };
            let mut index = queue.pop_front()?;
            if index & (STREAMS | READS) != 0 {
                let Some(marked) = self.take_marked(index) else { continue };
                index = marked;
            }
            self.turns += if is_step { TURNS_OF_STEP } else { 1 };
            let slot = &mut self.slots[index as usize];
            slot.queued = false;
            let Some(mut connection) = slot.connection.take() else { continue };
            if connection.streams.is_some() {
                // It is only read.
                self.last_stream.passed = self.last_stream.passed.saturating_sub(1);
            }
            let readiness = mem::take(&mut slot.readiness);
            connection.note(readiness.readable, readiness.hangup, readiness.expired);
            if connection.request.buffers.is_none()
                && let Some(buffers) = self.spare.pop()
            {
                self.spare_bytes -= buffers.memory().unwrap_or(0);
                connection.request.buffers = Some(buffers);
            }
            return Some(connection);
        }
    }

    /// Whether handshakes have waited long enough while others had their turns.
    #[cold]
    fn is_step_due(&mut self) -> bool {
        let (turns, since) = &mut self.before_step;
        let now = clock::precise_us();
        if *turns == 0 {
            *since = now;
        }
        *turns += 1;
        let is_due = *turns >= REQUESTS_PER_STEP || now > *since + STEP_AFTER;
        if is_due {
            *turns = 0;
        }
        is_due
    }

    /// What a marked entry of the queue stands for: a connection that is read, or the next of the streams that share the entry.
    #[cold]
    fn take_marked(&mut self, entry: u32) -> Option<u32> {
        self.marked -= 1;
        if entry & READS != 0 {
            return Some(entry & !READS);
        }
        let (last, mut keeps_until) = (&mut self.last_stream, 0);
        if last.entry == entry && last.keeps_until != 0 {
            keeps_until = mem::take(&mut last.keeps_until);
            let is_answered = self.slots[last.slot.0 as usize].generation != last.slot.1;
            let others_wait = self.ready.len() > self.marked;
            if !is_answered || others_wait || clock::precise_us() >= keeps_until {
                last.passed = u32::from(!self.ready.is_empty());
                self.marked += 1;
                self.ready.push_back(entry);
                return None;
            }
        } else if last.entry == entry && last.passed < LET_BY && !self.ready.is_empty() {
            last.passed += 1;
            self.marked += 1;
            self.ready.insert(1, entry);
            return None;
        }
        let streams = self.ready_streams.get_mut(&(entry & !STREAMS))?;
        let index = streams.pop_front()?;
        let slot = (index, self.slots[index as usize].generation);
        if streams.is_empty() {
            keeps_until = 0;
            self.ready_streams.remove(&(entry & !STREAMS));
        } else {
            if keeps_until == 0 {
                keeps_until = clock::precise_us() + KEPT;
            }
            self.behind -= 1;
            self.marked += 1;
            self.ready.push_front(entry);
        }
        self.last_stream = LastStream { entry, slot, passed: 0, keeps_until };
        self.note_streams();
        Some(index)
    }

    /// Puts a connection that is read for its streams behind the others.
    #[cold]
    fn push_read(&mut self, index: u32) {
        self.marked += 1;
        self.ready.push_back(index | READS);
    }

    /// Puts a stream behind the others of its connection that are ready.
    #[cold]
    fn push_stream(&mut self, index: u32, parent: u32) {
        let streams = self.ready_streams.entry(parent).or_default();
        match streams.is_empty() {
            true => {
                self.marked += 1;
                self.ready.push_back(parent | STREAMS);
            }
            false => self.behind += 1,
        }
        streams.push_back(index);
        self.note_streams();
    }

    /// Puts a connection into its slot. `true`: it is ready.
    #[inline]
    pub(crate) fn put_back(&mut self, connection: Box<Connection>, again: Again) -> bool {
        let (index, _) = connection.slot();
        let slot = &mut self.slots[index as usize];
        let is_handshaking = connection.phase() == Phase::Handshake;
        let Readiness { readable, writable, hangup, expired } = slot.readiness;
        let is_ready = again != Again::No || readable || hangup || expired || (writable && connection.waits_to_send());
        let has_streams = connection.streams.is_some();
        slot.connection = Some(connection);
        if is_ready && !slot.queued {
            slot.queued = true;
            let parent = slot.parent;
            match again {
                _ if is_handshaking => self.handshakes.push_back(index),
                Again::AtOnce => self.ready.push_front(index),
                Again::No | Again::InTurn if parent != NO_STREAM => self.push_stream(index, parent),
                Again::No | Again::InTurn if has_streams => self.push_read(index),
                Again::No | Again::InTurn => self.ready.push_back(index),
            }
        }
        is_ready
    }

    /// Puts a connection into the queue, unless a thread has it.
    #[inline]
    pub(crate) fn enqueue(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if let Some(connection) = &slot.connection
            && !slot.queued
        {
            slot.queued = true;
            match connection.phase() {
                Phase::Handshake => self.handshakes.push_back(index),
                _ if slot.parent != NO_STREAM => {
                    let parent = slot.parent;
                    self.push_stream(index, parent);
                }
                _ if connection.streams.is_some() => self.push_read(index),
                _ => self.ready.push_back(index),
            }
        }
    }

    /// Has a connection handled as if something had arrived; if a thread has it, when that puts it back.
    pub(crate) fn mark_readable(&mut self, index: u32) {
        self.of(index).readiness.readable = true;
        self.enqueue(index);
    }

    /// The same of all connections for which `is_meant` holds; a thread may have some of them. Returns their number.
    pub(crate) fn mark_all_readable(&mut self, is_meant: impl Fn(Option<&Connection>) -> bool) -> usize {
        let mut marked = 0;
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.socket.is_some() && is_meant(slot.connection.as_deref()) {
                self.mark_readable(index as u32);
                marked += 1;
            }
        }
        marked
    }

    /// Has all connections handled as if their deadlines had passed.
    pub(crate) fn expire_all(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].socket.is_some() {
                self.slots[index].readiness.expired = true;
                self.enqueue(index as u32);
            }
        }
    }

    /// The owner of a connection has handled its deadline.
    pub(crate) fn clear_expired(&mut self, index: u32) {
        self.of(index).readiness.expired = false;
    }

    /// Keeps the buffers of a connection that does not need them for the next one.
    #[inline]
    pub(crate) fn keep_spare(&mut self, buffers: Box<Buffers>) {
        if let Some(bytes) = buffers.memory()
            && self.spare_bytes + bytes <= SPARE
        {
            self.spare_bytes += bytes;
            self.spare.push(buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn socket() -> Arc<SharedSocket> {
        Arc::new(SharedSocket::new(OwnedFd::from(tempfile::tempfile().unwrap()), Arc::default()))
    }

    fn arrive(connections: &mut Connections, parent: Option<u32>) -> u32 {
        let socket = socket();
        let (index, generation) = match parent {
            Some(parent) => connections.occupy_stream(Arc::clone(&socket), parent),
            None => connections.occupy(Arc::clone(&socket)),
        };
        connections.of(index).connection = Some(Box::new(Connection::new(index, generation, socket, 0, None)));
        index
    }

    #[test]
    fn streams_of_a_connection_take_turns_with_other_connections() {
        let mut connections = Connections::default();
        let parents = [(); 2].map(|()| arrive(&mut connections, None));
        let many = [(); 4].map(|()| arrive(&mut connections, Some(parents[0])));
        let few = [(); 2].map(|()| arrive(&mut connections, Some(parents[1])));
        let plain = arrive(&mut connections, None);
        for index in many.into_iter().chain(few).chain([plain]) {
            connections.enqueue(index);
        }
        assert_eq!((connections.ready(), connections.live()), (7, 3));
        let mut order = Vec::new();
        while let Some(connection) = connections.take_ready() {
            order.push(connection.slot().0);
            assert_eq!(connections.ready(), 7 - order.len());
        }
        assert_eq!(order, [many[0], few[0], plain, many[1], few[1], many[2], many[3]]);
        assert!(connections.ready_streams.is_empty());
    }

    #[test]
    fn a_connection_keeps_its_turn_while_its_streams_are_answered_at_once() {
        let mut connections = Connections::default();
        let parents = [(); 2].map(|()| arrive(&mut connections, None));
        let many = [(); 5].map(|()| arrive(&mut connections, Some(parents[0])));
        let few = [(); 2].map(|()| arrive(&mut connections, Some(parents[1])));
        let plain = arrive(&mut connections, None);
        for index in many.into_iter().chain(few).chain([plain]) {
            connections.enqueue(index);
        }
        let mut order = Vec::new();
        while let Some(connection) = connections.take_ready() {
            let index = connection.slot().0;
            order.push(index);
            assert_eq!(connections.ready(), 8 - order.len());
            // However long this test takes: the third is not answered at once, and the fourth takes long.
            if index == many[3] {
                connections.last_stream.keeps_until = 1;
            } else if connections.last_stream.keeps_until != 0 {
                connections.last_stream.keeps_until = u64::MAX;
            }
            if index != many[2] {
                connections.vacate(index);
            }
        }
        let [a, b, c, d, e] = many;
        // Not while the one without streams waits.
        assert_eq!(order, [a, few[0], plain, b, c, few[1], d, e]);
        assert!(connections.ready_streams.is_empty() && connections.ready() == 0 && connections.marked == 0);
    }

    #[test]
    fn who_comes_behind_streams_is_next() {
        let mut connections = Connections::default();
        let parent = arrive(&mut connections, None);
        for index in [(); 9].map(|()| arrive(&mut connections, Some(parent))) {
            connections.enqueue(index);
        }
        let mut plain = Vec::new();
        let order: Vec<bool> = std::iter::from_fn(|| {
            let index = connections.take_ready()?.slot().0;
            if plain.len() < 6 {
                // Always one more than is taken.
                plain.push(arrive(&mut connections, None));
                connections.enqueue(plain[plain.len() - 1]);
            }
            Some(plain.contains(&index))
        })
        .collect();
        assert_eq!(order[..6], [false, true, true, false, true, true]);
        assert_eq!((order.len(), order.iter().filter(|is_plain| **is_plain).count()), (15, 6));
    }

    #[test]
    fn handshakes_have_turns_between_streams() {
        let mut connections = Connections::default();
        let handshake = arrive(&mut connections, None);
        let parent = arrive(&mut connections, None);
        let streams = [(); 40].map(|()| arrive(&mut connections, Some(parent)));
        let connection = connections.of(handshake).connection.as_mut().unwrap();
        connection.transition(crate::connection::state::PhaseEvent::BeginHandshake);
        for index in streams.into_iter().chain([handshake]) {
            connections.enqueue(index);
        }
        let mut order = std::iter::from_fn(|| {
            // The poller is asked before each stream that takes long.
            connections.start_round();
            connections.take_ready().map(|connection| connection.slot().0)
        });
        assert!(order.position(|index| index == handshake).unwrap() < REQUESTS_PER_STEP as usize);
    }

    #[test]
    fn events_of_the_previous_connection_of_a_slot_are_recognised() {
        let mut connections = Connections::default();
        let (index, generation) = connections.occupy(socket());
        assert!(connections.get(index, generation).is_some());
        connections.of(index).readiness.readable = true;
        connections.vacate(index);
        assert!(connections.get(index, generation).is_none() && connections.live() == 0);
        let (same, next) = connections.occupy(socket());
        assert!(same == index && connections.get(index, generation).is_none());
        assert!(connections.get(index, next).is_some_and(|slot| !slot.readiness.readable && !slot.queued));
        assert_eq!((connections.live(), connections.occupied().count()), (1, 1));
    }
}
