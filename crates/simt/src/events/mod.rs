//! What lanes do, as `exec` reports it to `sanitizer` and `counters`. This module uses none of the three.

pub(crate) mod access;
pub(crate) mod sites;
pub(crate) mod sync;
