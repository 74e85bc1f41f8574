//! Which lanes of a warp have arrived at an operation, as bits. `lanes` are the slots of one warp.

use super::slot::{Slot, Wait};

/// The members of the operation at which `slot` waits: the lanes of its mask that exist in the warp. `None` unless all
/// have arrived.
pub(super) fn members_if_all_arrived(lanes: &[Slot], slot: &Slot) -> Option<u32> {
    let Wait { operation, mask, .. } = slot.wait.get();
    let code = operation.code();
    let arrived = lanes_where(lanes, |other| other.is_at(code, mask));
    let members = mask & lanes_of(lanes);
    (arrived & members == members).then_some(members)
}

/// Whether `slot` waits at an operation of its warp at which all members have arrived.
pub(super) fn could_complete(lanes: &[Slot], slot: &Slot) -> bool {
    slot.waits_for_warp() && members_if_all_arrived(lanes, slot).is_some()
}

/// The lanes for which `holds` is true.
pub(super) fn lanes_where(lanes: &[Slot], holds: impl Fn(&Slot) -> bool) -> u32 {
    // A loop, because iterators are slow without optimization, and each warp operation comes here.
    let mut mask = 0;
    let mut lane = 0;
    while lane < lanes.len() {
        if holds(&lanes[lane]) {
            mask |= 1 << lane;
        }
        lane += 1;
    }
    mask
}

/// The lanes that exist in the warp: the last warp of a block may have fewer than 32.
pub(super) fn lanes_of(lanes: &[Slot]) -> u32 {
    u32::MAX >> (32 - lanes.len())
}
