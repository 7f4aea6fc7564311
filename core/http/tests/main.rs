//! All tests of this crate in one program, which is compiled and linked once.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod body;
mod case;
mod cases;
mod conditional_fields;
mod gateway;
mod gateway_answer;
mod head;
mod interim;
mod packet;
mod read_buffer;
mod receiver;
mod response;
mod static_cases;
mod trust;
mod trust_cases;
mod upgrade;
