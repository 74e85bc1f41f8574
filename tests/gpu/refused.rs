//! PTX and a cubin that the driver refuses.

use libtest_mimic::Failed;
use ptx_archive::{Effort, Text, cubin_of};
use test_kernels::out_of_bounds;
use warpfold::{Error, Gpu};

/// The header of an ELF file for a GPU, without any section.
const EMPTY_CUBIN: [u8; 64] = {
    let mut header = [0; 64];
    [header[0], header[1], header[2], header[3]] = *b"\x7fELF";
    // 64 bits, little-endian, version 1; an executable, for CUDA; the size of this header.
    [header[4], header[5], header[6]] = [2, 1, 1];
    [header[16], header[18], header[20], header[52]] = [2, 190, 1, 64];
    header
};

/// Launches a kernel whose PTX has an instruction that does not exist, without a cubin and with one that has no kernel:
/// the driver then compiles the PTX.
pub fn refused_ptx(gpu: &Gpu) -> Result<(), Failed> {
    let (major, minor) = gpu.info()?.compute_capability.ok_or("a GPU has a compute capability")?;
    let name = out_of_bounds::handle().id().entry;
    let cubin = Text { name: &cubin_of(name), arch: 10 * major + minor, contents: &EMPTY_CUBIN };
    refused(name, &[])?;
    refused(name, &[cubin])
}

fn refused(name: &str, cubins: &[Text<'_>]) -> Result<(), Failed> {
    let ptx = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry {name}()\n{{\n    nonsense.u32;\n    ret;\n}}\n"
    );
    let texts = [&[Text { name, arch: 75, contents: ptx.as_bytes() }], cubins].concat();
    let archive = ptx_archive::pack(&texts, Effort::Fast)?.leak();
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
