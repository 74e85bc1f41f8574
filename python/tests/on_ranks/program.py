"""What each rank runs: `program.py mpi` under mpirun, or `program.py gloo cpu`, `gloo cuda`, `nccl cuda` or `both cuda`
under torchrun, where both are NCCL for devices and Gloo for the host. Prints `right` on rank 0.

Every rank makes the whole array from a seed, takes its shard, and compares each result with that of the whole array.
"""

import math
import pathlib
import sys

import ml_dtypes
import numpy as np
import warpfold as wf
import warpfold.distributed as wfd

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import hashes

KIND, DEVICE = sys.argv[1], (sys.argv[2:] or ["cpu"])[0]

if KIND == "mpi":
    from mpi4py import MPI

    GROUP = MPI.COMM_WORLD
    RANK, RANKS = GROUP.Get_rank(), GROUP.Get_size()
else:
    import os

    import torch

    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if KIND == "both" else KIND)
    GROUP = None
    RANK, RANKS = torch.distributed.get_rank(), torch.distributed.get_world_size()

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = ["float16", BFLOAT16, "float32", "float64"]


def cuts(extent, seed):
    """Where the shards begin and end: uneven, some of them empty."""
    inner = np.sort(np.random.default_rng(seed).integers(0, extent, RANKS - 1, endpoint=True))
    if RANKS > 2:
        inner[1] = inner[0]
    return [0, *inner.tolist(), extent]


def shard(whole, seed, axis=0):
    edges = cuts(whole.shape[axis], seed)
    part = np.take(whole, range(edges[RANK], edges[RANK + 1]), axis)
    return placed(part)


def placed(array):
    if KIND == "mpi":
        return array
    # PyTorch does not know ml_dtypes.
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).to(DEVICE)
    return torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE)


def on_host(result):
    if not hasattr(result, "cpu"):
        return np.asarray(result)
    result = result.cpu()
    return result.view(torch.int16).numpy().view(BFLOAT16) if result.dtype is torch.bfloat16 else result.numpy()


def same(actual, expected, what):
    actual, expected = on_host(actual), np.asarray(expected)
    is_same = actual.shape == expected.shape and actual.dtype == expected.dtype
    # Bit for bit; every NaN of this package has the same bits.
    if not is_same or actual.tobytes() != expected.tobytes():
        raise AssertionError(f"rank {RANK}: {what}: {actual!r} of {actual.dtype}, expected {expected!r}")


def data(dtype, shape, seed):
    """Numbers of both signs of which the sums are right only if they are exact."""
    rng = np.random.default_rng(seed)
    x = np.ldexp(rng.uniform(-1, 1, shape), rng.integers(-12 if dtype == "float16" else -60, 13, shape))
    return x.astype(dtype)


def check_one_hash():
    """The results of fractions, which every other way has, too."""
    for name in hashes.DTYPES:
        part = shard(hashes.numbers(name), 15)
        hashes.check(name, [on_host(f(part, group=GROUP)) for f in (wfd.sum, wfd.mean, wfd.norm)])
        states = [wf.ExactSum(part), wf.ExactSumOfSquares(part)]
        sums, squares = (wfd.all_reduce(of_part, GROUP) for of_part in states)
        hashes.check_states(name, sums, squares)


def check_sums():
    for dtype in FLOATS:
        for seed, shape in enumerate([(100_003,), (1,), (0,), (57, 40, 3)]):
            whole = data(dtype, shape, seed)
            part = shard(whole, seed)
            what = f"of {dtype} {shape}"
            same(wfd.sum(part, group=GROUP), wf.sum(whole), f"sum {what}")
            same(wfd.mean(part, group=GROUP), wf.mean(whole), f"mean {what}")
            same(wfd.norm(part, group=GROUP), wf.vector_norm(whole), f"norm {what}")
            wide = "float32" if dtype in ("float16", BFLOAT16) else "float64"
            same(wfd.sum(part, dtype=wide, group=GROUP), wf.sum(whole, dtype=wide), f"sum {what} in {wide}")
            for count in ("count_nonzero", "count_nan", "count_finite"):
                same(getattr(wfd, count)(part, group=GROUP), getattr(wf, count)(whole), f"{count} {what}")
    whole = data("float64", (31, 20, 7), 9)
    for axis, of_shards in ((0, 0), (1, 1), (-1, 2), ((0, 2), 2), ((0, 1), 0), (None, 1)):
        part = shard(whole, 9, of_shards)
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            same(wfd.sum(part, **options, group=GROUP), wf.sum(whole, **options), f"sum {options}")
            same(wfd.mean(part, **options, group=GROUP), wf.mean(whole, **options), f"mean {options}")
            same(wfd.norm(part, **options, group=GROUP), wf.vector_norm(whole, **options), f"norm {options}")
    special = data("float32", (1000,), 10)
    special[[3, 999]] = math.inf
    same(wfd.sum(shard(special, 10), group=GROUP), wf.sum(special), "sum with infinities")
    special[500] = -math.inf
    same(wfd.sum(shard(special, 10), group=GROUP), wf.sum(special), "sum with both infinities")
    whole = np.random.default_rng(11).integers(-(2**31), 2**31, (999, 3))
    for dtype in ("int64", "int32", "uint8"):
        x = whole.astype(dtype)
        same(wfd.sum(shard(x, 11), group=GROUP), wf.sum(x), f"sum of {dtype}")
        same(wfd.sum(shard(x, 11), axis=0, group=GROUP), wf.sum(x, axis=0), f"sums of {dtype}")
        if dtype != "int64":
            same(wfd.mean(shard(x, 11), axis=0, group=GROUP), wf.mean(x, axis=0), f"means of {dtype}")
            same(wfd.norm(shard(x, 11), group=GROUP), wf.vector_norm(x), f"norm of {dtype}")


def check_extremes():
    rng = np.random.default_rng(12)
    for dtype in (*FLOATS, "int64", "uint8"):
        # Many equal elements, so that the first one counts.
        whole = rng.integers(0, 4, (97, 11)).astype(dtype)
        if dtype == "float32":
            whole[60:80, 5] = math.nan
        part = shard(whole, 12)
        for axis in (None, 0):
            for keepdims in (False, True):
                options = {"axis": axis, "keepdims": keepdims}
                for name in ("min", "max", "argmin", "argmax", "any", "all"):
                    actual = getattr(wfd, name)(part, **options, group=GROUP)
                    same(actual, getattr(wf, name)(whole, **options), f"{name} of {dtype} {options}")
        # The shards in another order than that of the ranks.
        edges = cuts(97, 12)
        other = (RANK + 1) % RANKS
        moved = placed(whole[edges[other] : edges[other + 1]])
        for name in ("argmin", "argmax"):
            actual = getattr(wfd, name)(moved, axis=0, offset=edges[other], group=GROUP)
            same(actual, getattr(wf, name)(whole, axis=0), f"{name} of {dtype} with offsets")
    for name in ("min", "argmax"):
        fails(ValueError, "no elements", lambda name=name: getattr(wfd, name)(placed(np.zeros(0)), group=GROUP))
    same(wfd.any(placed(np.zeros(0)), group=GROUP), np.bool_(False), "any of nothing")
    same(wfd.all(placed(np.zeros(0)), group=GROUP), np.bool_(True), "all of nothing")


def check_states():
    whole = data("float32", (12_345, 3), 13)
    part = shard(whole, 13)
    sums = wfd.all_reduce(wf.exact_sums(part, axis=0), GROUP)
    assert bytes(sums) == bytes(wf.exact_sums(whole, axis=0))
    squares = wfd.all_reduce(wf.exact_sums_of_squares(part, axis=0), GROUP)
    assert bytes(squares) == bytes(wf.exact_sums_of_squares(whole, axis=0))
    assert bytes(sums + sums) == bytes(wf.exact_sums(np.concatenate([whole, whole]), axis=0))
    one = wfd.all_reduce(wf.ExactSum(part), GROUP)
    assert bytes(one) == bytes(wf.ExactSum(whole))
    if KIND == "mpi":
        assert bytes(wfd.all_reduce(wf.ExactDot(part, part), GROUP)) == bytes(wf.ExactDot(whole, whole))
        assert bytes(wfd.all_reduce(wf.ExactSumOfSquares(part), GROUP)) == bytes(wf.ExactSumOfSquares(whole))


def fails(kind, message, call):
    try:
        call()
    except kind as error:
        assert message in str(error), (RANK, str(error))
        return
    raise AssertionError(f"rank {RANK}: no {kind.__name__} with {message!r}")


def check_disagreement():
    """Every rank gets an exception, and the next call works."""
    x = placed(np.ones((4, 5)))
    if RANKS > 1:
        odd = RANK == RANKS - 1
        name = f"rank {RANKS - 1}" if RANKS > 2 else "rank"
        of_odd = placed(np.ones((4, 6 if odd else 5)))
        fails(ValueError, name, lambda: wfd.sum(of_odd, axis=0, group=GROUP))
        of_odd = placed(np.ones((4, 5), "float32" if odd else "float64"))
        fails(ValueError, name, lambda: wfd.norm(of_odd, axis=0, group=GROUP))
        fails(ValueError, name, lambda: wfd.min(of_odd, axis=0, group=GROUP))
        make = wf.exact_sums_of_squares if odd else wf.exact_sums
        fails(ValueError, name, lambda: wfd.all_reduce(make(x), GROUP))
        # An error of one rank alone.
        axis = 7 if odd else 0
        fails(Exception if odd else RuntimeError, "" if odd else name, lambda: wfd.mean(x, axis=axis, group=GROUP))
        offset = 3 if odd else None
        fails(ValueError, name, lambda: wfd.argmin(x, axis=0, offset=offset, group=GROUP))
    same(wfd.sum(x, group=GROUP), np.float64(20 * RANKS), "the sum after errors")
    fails(TypeError, "convert", lambda: wfd.mean(placed(np.ones(3, "int64")), group=GROUP))
    fails(TypeError, "astype", lambda: wfd.sum(placed(np.ones(3, "int64")), dtype="float64", group=GROUP))


def bits(x):
    """The bytes of a tensor of any strides."""
    return torch.cat([x.cpu().reshape(-1)]).view(torch.uint8)


def check_tensors():
    """The exact all-reduce of tensors: against the sums of all ranks' tensors, in any order of the ranks."""
    import warpfold.torch

    generator = torch.Generator().manual_seed(14)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        # Lengths that all numbers of ranks divide, that some do, and that none does.
        for shape in ((1,), (0,), (5040,), (1000,), (33, 65), (7, 11, 13)):
            real = torch.float64 if dtype is torch.float64 else torch.float32
            scale = 12 if dtype is torch.float16 else 40
            parts = torch.randn((RANKS, *shape, 2), generator=generator, dtype=real)
            parts = torch.ldexp(parts, torch.randint(-scale, scale // 2, parts.shape, generator=generator))
            all_ranks = torch.view_as_complex(parts) if dtype.is_complex else parts[..., 0].to(dtype)
            of_parts = torch.view_as_real(all_ranks) if dtype.is_complex else all_ranks
            expected = wf.sum(of_parts.contiguous(), axis=0)
            expected = torch.view_as_complex(expected) if dtype.is_complex else expected
            for rank in (RANK, RANKS - 1 - RANK):
                x = all_ranks[rank].clone().to(DEVICE)
                assert warpfold.torch.all_reduce(x) is x
                assert torch.equal(bits(x), bits(expected)), (dtype, shape)
            # In several messages, of any lengths, and not contiguous.
            x = all_ranks[RANK].clone().to(DEVICE)
            flat = x.reshape(-1)
            for start, end in zip((0, 3, 500), (3, 500, None), strict=True):
                warpfold.torch.all_reduce(flat[start:end])
            assert torch.equal(flat.cpu(), expected.reshape(-1)), (dtype, shape)
    x = torch.ones(4, 6, device=DEVICE).t()
    assert warpfold.torch.all_reduce(x).tolist() == [[RANKS] * 4] * 6
    # What is lazily conjugated or negated.
    x = torch.full((5040,), 1 + 2j, device=DEVICE)
    assert warpfold.torch.all_reduce(x.conj()).tolist() == [RANKS * (1 - 2j)] * 5040
    x = torch.full((5040,), 1 + 2j, device=DEVICE)
    assert warpfold.torch.all_reduce(x.conj().imag).tolist() == [-2 * RANKS] * 5040
    x = torch.full((5,), 2, device=DEVICE)
    assert warpfold.torch.all_reduce(x).tolist() == [2 * RANKS] * 5
    if DEVICE == "cuda" and KIND != "gloo":
        check_graph(warpfold.torch.all_reduce)


def check_graph(all_reduce):
    """An all-reduce in a CUDA graph."""
    x, y = torch.zeros(1000, device="cuda"), torch.full((1000,), RANK + 0.5, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.copy_(y)
        all_reduce(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(y)
        all_reduce(x)
    for factor in (1, 3):
        y.fill_((RANK + 0.5) * factor)
        graph.replay()
        assert x.tolist() == [factor * RANKS**2 / 2] * 1000


check_one_hash()
check_sums()
check_extremes()
check_states()
check_disagreement()
if KIND != "mpi":
    check_tensors()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
if RANK == 0:
    print("right")
