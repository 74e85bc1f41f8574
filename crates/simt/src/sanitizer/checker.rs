//! One core's checks of memory accesses.

use std::sync::Arc;

use super::access_cache::AccessCache;
use super::clocks::Clocks;
use super::element_cell::{PlainAccess, ShadowWord};
use super::epochs::PackedStamp;
use super::exact_cell::Effect;
use super::exact_memory::ExactRange;
use super::launch::LaunchSanitizer;
use super::stamp::{Stamp, Strength};
use crate::events::access::{Access, ElementAccess, MemoryAccess, Space};
use crate::events::sites::SiteId;
use crate::events::sync::Fence;
use crate::memory::Element;

/// Checks the block that a core runs.
pub(crate) struct Checker {
    pub(super) launch: Arc<LaunchSanitizer>,
    pub(super) clocks: Clocks,
    shared_memory: ExactRange,
}

impl Checker {
    pub fn new(launch: Arc<LaunchSanitizer>) -> Self {
        Self { launch, clocks: Clocks::new(), shared_memory: ExactRange::default() }
    }

    /// Begins another launch.
    pub fn begin_launch(&mut self, launch: Arc<LaunchSanitizer>) {
        if self.clocks.are_near_overflow() {
            *self = Self::new(launch);
        } else {
            self.launch = launch;
        }
    }

    /// Begins a block. `shared_bytes` is the maximum shared memory that it can have; 0 if it is not checked.
    pub fn begin_block(&mut self, index: u64, shared_bytes: usize, cache: &AccessCache) {
        self.clocks.begin_block(index as u32, cache);
        if self.shared_memory.len() < shared_bytes {
            self.shared_memory = ExactRange::new(shared_bytes);
        }
    }

    /// Checks a plain load or store, or an atomic operation on shared memory. If possible, the cache then covers the
    /// elements around it. `element_of_shared` names an offset in shared memory.
    #[inline(never)]
    pub fn plain(
        &mut self,
        access: &MemoryAccess,
        site: SiteId,
        cache: &AccessCache,
        element_of_shared: impl Fn(usize) -> Option<Element>,
    ) {
        if matches!(access.kind.space(), Space::Shared) {
            self.shared(access, site, element_of_shared);
        } else if !self.record_if_alone(access, site, cache) {
            self.global(access, site, Effect::of(access.kind.access()));
        }
    }

    /// Records an access of global memory that cannot conflict, as most cannot. Returns whether it did.
    fn record_if_alone(&mut self, access: &MemoryAccess, site: SiteId, cache: &AccessCache) -> bool {
        let MemoryAccess { thread, kind, address, location } = *access;
        let launch = &*self.launch;
        let element = if launch.may_cache { ElementAccess::new(kind.access(), kind.bytes(), location) } else { None };
        if let Some(element) = element
            && cache.covers(thread, element, address)
        {
            return false;
        }
        let Some(array) = launch.arguments.array_at(address, kind.bytes()) else { return false };
        let Some(epoch) = self.clocks.epoch(thread / 32, &launch.epochs) else { return false };
        let is_read = matches!(kind.access(), Access::Load);
        if is_read && !array.is_written() {
            if let Some(element) = element {
                cache.begin_epoch(thread / 32, epoch);
                // SAFETY: the window has no words.
                unsafe { cache.remember(element, ShadowWord::NONE, array.unwritten_window(kind.bytes())) };
            }
            return true;
        }
        if let Some(element) = element
            && let Some(window) = array.window_at(address, kind.bytes())
        {
            cache.begin_epoch(thread / 32, epoch);
            let word = ShadowWord::new(PackedStamp::NONE.at(site), is_read);
            // SAFETY: the words are the launch's, which this checker holds until its next launch begins. The monitor
            // calls `AccessCache::forget` when a launch ends.
            unsafe { cache.remember(element, word, window) };
        }
        array.record_if_alone(address, kind.bytes(), is_read, PackedStamp::new(epoch, thread, site))
    }

    /// Checks a plain access of global memory.
    fn global(&mut self, access: &MemoryAccess, site: SiteId, effect: Effect) {
        let MemoryAccess { thread, kind, address, .. } = *access;
        if matches!(effect, Effect::Read) && self.launch.arguments.are_unwritten(address, kind.bytes()) {
            return;
        }
        let Some(own) = self.clocks.packed_stamp(thread, site, &self.launch.epochs) else {
            return self.exact(access, Strength::Plain, site, effect);
        };
        let plain = PlainAccess { address, bytes: kind.bytes(), effect, own };
        let launch = &*self.launch;
        let happens_before = |stamp| happens_before(&self.clocks, launch, thread, stamp);
        if let Some((at, conflict)) = launch.arguments.access(plain, &launch.epochs, &launch.exact, happens_before) {
            launch.reports.global_access(launch.epochs.unpack(plain.own), effect, at, conflict);
        }
    }

    fn shared(&mut self, access: &MemoryAccess, site: SiteId, element_of_shared: impl Fn(usize) -> Option<Element>) {
        let (thread, address, bytes) = (access.thread, access.address, access.kind.bytes());
        let operation = access.kind.access();
        // An atomic operation on shared memory orders no other access: no thread acquires by it.
        let is_atomic = matches!(operation, Access::Atomic);
        let own = self.clocks.stamp(thread, if is_atomic { Strength::Block } else { Strength::Plain }, site);
        let mut recorded = address;
        if !is_atomic {
            let is_read = matches!(operation, Access::Load);
            let first_phase = self.clocks.first_phase();
            recorded = self.shared_memory.record_while_settled(address, bytes, &own, is_read, first_phase);
            if recorded == address + bytes {
                return;
            }
        }
        let effect = Effect::of(operation);
        let clocks = &self.clocks;
        let found = self.shared_memory.access(
            recorded,
            address + bytes - recorded,
            own,
            effect,
            |stamp| clocks.is_of_block(stamp),
            |stamp| clocks.knows_within_block(thread, stamp),
        );
        if let Some((at, conflict)) = found {
            self.launch.reports.shared_access(own, effect, element_of_shared(at), conflict);
        }
    }

    /// Checks an access of global memory that only the exact cells can record.
    fn exact(&self, access: &MemoryAccess, strength: Strength, site: SiteId, effect: Effect) {
        let MemoryAccess { thread, kind, address, .. } = *access;
        let launch = &*self.launch;
        launch.arguments.give_up(address, kind.bytes(), &launch.epochs, &launch.exact);
        let own = self.clocks.stamp(thread, strength, site);
        let happens_before = |stamp| happens_before(&self.clocks, launch, thread, stamp);
        if let Some((at, conflict)) = launch.exact.access(address, kind.bytes(), own, effect, happens_before) {
            launch.reports.global_access(own, effect, at, conflict);
        }
    }

    /// Checks a load from global memory of any size at any address.
    pub fn unaligned_load(&mut self, access: &MemoryAccess, site: SiteId) {
        self.global(access, site, Effect::Read);
    }

    /// Checks an atomic operation on global memory. Calls are in the order of the launch's atomic operations.
    pub fn atomic(&mut self, access: &MemoryAccess, is_of_block: bool, site: SiteId) {
        let effect = Effect::of(access.kind.access());
        let strength = if is_of_block { Strength::Block } else { Strength::Device };
        self.exact(access, strength, site, effect);
        let (reads, writes) = (effect != Effect::Write, effect != Effect::Read);
        self.clocks.atomic(access.thread, access.address, reads, writes, &mut self.launch.releases());
    }

    pub fn fence(&mut self, thread: usize, fence: Fence, cache: &AccessCache) {
        self.clocks.fence(thread, fence, cache);
    }
}

/// Whether an access happens before the thread's next access.
fn happens_before(clocks: &Clocks, launch: &LaunchSanitizer, thread: usize, stamp: Stamp) -> bool {
    clocks.knows_within_block(thread, stamp)
        || clocks.has_acquired(thread) && clocks.knows_by_fences(thread, stamp, &launch.releases())
}
