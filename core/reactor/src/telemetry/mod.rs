//! Decides whether requests are timed (for metrics and logs that ask for it); what is noted of a response when it is complete, and when sent.
//!
//! ```text
//! mod.rs       what logs and times depend on; names of requests
//! logging.rs   access log, once the last byte of a response is sent
//! timing.rs    bytes, states of connections, times of requests; slow log
//! ```

pub(crate) mod logging;
pub(crate) mod timing;

use std::net::IpAddr;
use std::sync::Arc;

use crate::connection::peer_trust::client_suffix;
use crate::connection::{Connection, Unacknowledged};
use crate::log::access::AccessLog;
use crate::log::error::ErrorLog;
use crate::log::request_id::{RequestIds, RequestName};
use crate::status::counters::Counters;
use crate::status::{Recorder, WorkerStatus};

/// What logs and times of requests depend on.
#[derive(Debug)]
pub(crate) struct Telemetry {
    pub(crate) access_log: Option<Arc<AccessLog>>,
    pub(crate) error_log: Arc<ErrorLog>,
    pub(crate) request_ids: Option<RequestIds>,
    counters: &'static Counters,
    /// Where slow requests, errors and refusals are noted, if they are.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// Microseconds from which on a request is logged as slow; 0: none is.
    pub(crate) slow_request: u64,
    takes_times: bool,
    pub(crate) unacknowledged: Unacknowledged,
}

impl Telemetry {
    pub(crate) fn new(
        access_log: Option<Arc<AccessLog>>,
        error_log: Arc<ErrorLog>,
        request_ids: Option<RequestIds>,
        counters: &'static Counters,
        records: Option<&'static WorkerStatus>,
        slow_request: u64,
        unacknowledged: Unacknowledged,
    ) -> Self {
        error_log.count_lost(&counters.metrics.lines_lost);
        if let Some(log) = &access_log {
            log.count_lost(&counters.metrics.lines_lost);
        }
        let (takes_times, recorder) =
            (slow_request != 0 || records.is_some(), records.map(Recorder::new).map(Arc::new));
        Telemetry { access_log, error_log, request_ids, counters, recorder, slow_request, takes_times, unacknowledged }
    }

    /// Whether times are taken: for metrics, or for the slow log.
    #[inline]
    pub(crate) fn takes_times(&self) -> bool {
        self.takes_times
    }

    /// The name in the log of a request whose method and target are not known, or not any more.
    pub(crate) fn request_name(&self, number: u64, connection: &Connection) -> RequestName {
        let request = &connection.request;
        request.name(self.request_ids, number, client_of(request.client()))
    }

    /// The name of the last request, which has been answered.
    pub(crate) fn last_request_name(&self, connection: &Connection) -> RequestName {
        let request = &connection.request;
        match &connection.last_name {
            Some(name) if name.number == request.number => (**name).clone(),
            _ => request.name(self.request_ids, request.number, client_of(request.last_client())),
        }
    }
}

/// The client for the name of a request: `of ADDRESS:PORT`.
fn client_of(client: Option<(IpAddr, Option<u16>)>) -> String {
    client_suffix(client).trim_start().to_owned()
}
