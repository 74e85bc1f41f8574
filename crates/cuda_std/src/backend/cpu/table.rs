//! The function table that the lanes of a CPU thread call in place of an erased operator.

use core::any::TypeId;
use core::cell::Cell;
use std::thread_local;

/// A `&'static V`, with `V` known only by its `TypeId`.
#[derive(Clone, Copy)]
struct Entered {
    table: *const (),
    id: TypeId,
}

thread_local! {
    static ENTERED: Cell<Option<Entered>> = const { Cell::new(None) };
}

#[inline(always)]
pub(crate) fn enter_table<V: Sync>(table: &'static V) {
    ENTERED.set(Some(Entered { table: core::ptr::from_ref(table).cast(), id: TypeId::of::<V>() }));
}

#[inline(always)]
pub(crate) fn table<V: Sync>() -> &'static V {
    match ENTERED.get() {
        // SAFETY: `enter_table` made it from a `&'static` of the type with that `TypeId`, which is `V`; and `V` is
        // `Sync`.
        Some(entered) if entered.id == TypeId::of::<V>() => unsafe { &*entered.table.cast::<V>() },
        _ => no_table(),
    }
}

#[cold]
#[inline(never)]
fn no_table() -> ! {
    panic!("an erased kernel runs, and this thread has not entered its operator's table")
}
