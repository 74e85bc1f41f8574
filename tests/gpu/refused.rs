//! PTX that the driver refuses.

use libtest_mimic::Failed;
use ptx_archive::{Effort, Text};
use test_kernels::out_of_bounds;
use warpfold::{Error, Gpu};

/// Launches a kernel whose PTX has an instruction that does not exist.
pub fn refused_ptx(_: &Gpu) -> Result<(), Failed> {
    let name = out_of_bounds::handle().id().entry;
    let ptx = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry {name}()\n{{\n    nonsense.u32;\n    ret;\n}}\n"
    );
    let archive = ptx_archive::pack(&[Text { name, arch: 75, ptx: &ptx }], Effort::Fast)?.leak();
    // SAFETY: the driver refuses the only entry, so that no kernel is launched by this PTX.
    let library = Box::leak(Box::new(unsafe { warpfold::interop::library("test_kernels", archive) }));
    let gpu = Gpu::with_libraries(0, &[library])?;
    let mut out = gpu.zeroed::<u32>(10)?;
    let arguments = out_of_bounds::Args { out: out.view_mut(), index: 1 };
    let error = match gpu.launch(out_of_bounds::handle(), 1, arguments) {
        Err(error @ Error::RefusedPtx { .. }) => error.to_string(),
        other => return Err(format!("{other:?} and not refused PTX").into()),
    };
    for part in [&format!("`{name}`"), "`test_kernels`", "nonsense", "Update the driver"] {
        if !error.contains(part) {
            return Err(format!("`{part}` is missing in: {error}").into());
        }
    }
    Ok(())
}
