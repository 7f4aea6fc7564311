//! A place for each connection.

use std::sync::Arc;

use crate::connection::Connection;
use crate::connection::shared_socket::SharedSocket;
use crate::event_loop::timers::Deadline;
use crate::sys::poller::GENERATIONS;

/// What has happened to a connection while nobody looked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) hangup: bool,
    /// Its deadline has passed.
    pub(crate) expired: bool,
}

/// One place.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) generation: u32,
    /// In the queue of those to be looked at.
    pub(crate) queued: bool,
    pub(crate) readiness: Readiness,
    pub(crate) deadline: Deadline,
    /// What can be reached of a connection while somebody else has it.
    pub(crate) socket: Option<Arc<SharedSocket>>,
    /// The connection, unless somebody has it: a thread that reads it, or the request it carries.
    pub(crate) connection: Option<Box<Connection>>,
}

/// All places. A place is used again with another generation, so what was meant for its last tenant is recognised.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Slots {
    /// Takes a place and says where it is.
    pub(crate) fn occupy(&mut self, socket: Arc<SharedSocket>) -> (u32, u32) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        (index, slot.generation)
    }

    /// Gives a place back.
    pub(crate) fn vacate(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let generation = (slot.generation + 1) % GENERATIONS;
        *slot = Slot { generation, ..Slot::default() };
        self.vacant.push(index);
    }

    /// The place of a live connection. Only its owner asks.
    #[inline]
    pub(crate) fn of(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The place, if it is still the same tenant's.
    #[inline]
    pub(crate) fn get(&mut self, index: u32, generation: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize).filter(|slot| slot.generation == generation && slot.socket.is_some())
    }

    /// Connections that are alive.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Every place with a connection.
    pub(crate) fn occupied(&mut self) -> impl Iterator<Item = (u32, &mut Slot)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter(|(_, slot)| slot.socket.is_some())
            .map(|(index, slot)| (index as u32, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Arc<SharedSocket> {
        Arc::new(SharedSocket::new(tempfile::tempfile().unwrap().into(), Arc::default()))
    }

    #[test]
    fn what_was_meant_for_the_last_tenant_is_recognised() {
        let mut slots = Slots::default();
        let (index, generation) = slots.occupy(socket());
        assert!(slots.get(index, generation).is_some());
        slots.of(index).readiness.readable = true;
        slots.vacate(index);
        assert!(slots.get(index, generation).is_none() && slots.live() == 0);
        let (same, next) = slots.occupy(socket());
        assert!(same == index && slots.get(index, generation).is_none());
        assert!(slots.get(index, next).is_some_and(|slot| !slot.readiness.readable && !slot.queued));
        assert_eq!((slots.live(), slots.occupied().count()), (1, 1));
    }
}
