//! The function table that the lanes of a CPU thread call in place of an erased operator.

use core::any::TypeId;
use core::cell::Cell;
use core::ptr;
use std::thread_local;

/// A `&'static V`, with `V` known only by its `TypeId`; `None` until there is one.
struct Entered {
    table: Cell<*const ()>,
    id: Cell<Option<TypeId>>,
}

thread_local! {
    static ENTERED: Entered = const { Entered { table: Cell::new(ptr::null()), id: Cell::new(None) } };
}

#[inline(always)]
fn entered<'a>() -> &'a Entered {
    let Ok(entered) = ENTERED.try_with(ptr::from_ref) else { no_table() };
    // SAFETY: it has no destructor, so it exists until its thread ends. It stays on its thread, as it is not `Sync`.
    unsafe { &*entered }
}

#[inline(always)]
pub(crate) fn enter_table<V: Sync>(table: &'static V) {
    let entered = entered();
    entered.table.set(ptr::from_ref(table).cast());
    entered.id.set(Some(TypeId::of::<V>()));
}

#[inline(always)]
pub(crate) fn table<V: Sync>() -> &'static V {
    let entered = entered();
    match entered.id.get() {
        // SAFETY: `enter_table` made it from a `&'static` of the type with that `TypeId`, which is `V`; and `V` is
        // `Sync`.
        Some(id) if id == TypeId::of::<V>() => unsafe { &*entered.table.get().cast::<V>() },
        _ => no_table(),
    }
}

#[cold]
#[inline(never)]
fn no_table() -> ! {
    panic!("an erased kernel runs, and this thread has not entered its operator's table")
}
