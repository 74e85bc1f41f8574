"""Values, dtypes, layouts, errors and autograd of the exact operators."""

import functools
import math
import threading

import pytest
import torch
import warpfold.torch
from hypothesis import given
from hypothesis import strategies as st
from reference import FLOATS, assert_same, exact_mean, exact_norm, exact_norm1, exact_sum, hard, of_values, reference

INTEGERS = [getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]

vector_norm = torch.linalg.vector_norm
FUNCTIONS = {
    "sum": (torch.sum, exact_sum),
    "mean": (torch.mean, exact_mean),
    "norm": (vector_norm, exact_norm),
    "norm1": (functools.partial(vector_norm, ord=1), exact_norm1),
}
DIMS = [None, [], 0, -1, (0, 2), (3, 1, 0), (-1, -2), (0, 1, 2, 3)]


def strided(x):
    """The same elements with gaps and at an odd offset."""
    memory = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 1), math.nan, dtype=x.dtype, device=x.device)
    memory[..., 1::2] = x
    return memory[..., 1::2]


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "reversed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "strided": strided,
    "expanded": lambda x: x[:, :1].expand(x.shape),
}


def as_list(dim):
    return [dim] if isinstance(dim, int) else dim


# Values


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_table_of_dims_and_layouts(exact, device, name, dtype, keepdim):
    function, fractions = FUNCTIONS[name]
    base = hard(4, 3, 2, 5, dtype=dtype, device=device)
    for layout in LAYOUTS.values():
        x = layout(base)
        for dim in DIMS:
            expected = reference(fractions, x, as_list(dim), keepdim)
            assert_same(function(x, dim=dim, keepdim=keepdim), expected)
            out = torch.empty_like(expected, device=device)
            assert function(x, dim=dim, keepdim=keepdim, out=out) is out
            assert_same(out, expected)
        assert_same(function(x), reference(fractions, x))
        if name in ("sum", "mean"):
            overload = torch.ops.aten.sum.out if name == "sum" else torch.ops.aten.mean.dtype_out
            out = torch.empty((), dtype=dtype, device=device)
            assert_same(overload(x, dtype=dtype, out=out), reference(fractions, x))


def test_the_elements_are_hard(device):
    for dtype in FLOATS:
        x = torch.stack([hard(300, dtype=dtype, device=device) for _ in range(50)])
        # PyTorch adds narrow floats as float32, which seldom changes the digits of a norm.
        for name in ("sum", "mean") if dtype in FLOATS[:2] else FUNCTIONS:
            function, fractions = FUNCTIONS[name]
            assert (function(x, dim=1).cpu() != reference(fractions, x, [1])).any(), (name, dtype)


@st.composite
def calls(draw):
    """A tensor of any floats, as integers of their bits, and dimensions."""
    dtype = draw(st.sampled_from(FLOATS))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    size = torch.finfo(dtype).bits
    limits = [0.0, -0.0, 1.0, -1.0, torch.finfo(dtype).max, -torch.finfo(dtype).max, math.inf, -math.inf, math.nan]
    some = draw(st.lists(st.integers(-(2 ** (size - 1)), 2 ** (size - 1) - 1), min_size=1, max_size=5))
    some = torch.tensor(some, dtype=getattr(torch, f"int{size}")).view(dtype)
    some = torch.cat([some, torch.tensor(limits, dtype=dtype), torch.randn(9).to(dtype)])
    # Infinities and NaN in every tensor would hide the rest.
    if draw(st.integers(0, 3)):
        some = some[some.isfinite()]
    indices = draw(st.lists(st.integers(0, len(some) - 1), min_size=math.prod(shape), max_size=math.prod(shape)))
    x = some[torch.tensor(indices, dtype=torch.int64)].reshape(shape)
    x = x.permute(draw(st.permutations(range(len(shape)))))
    dims = draw(st.lists(st.sampled_from(range(max(len(shape), 1))), unique=True))
    return x, [d - max(len(shape), 1) * draw(st.booleans()) for d in dims], draw(st.booleans())


@given(call=calls(), name=st.sampled_from(sorted(FUNCTIONS)))
def test_any_tensor(device, call, name):
    (x, dim, keepdim), (function, fractions) = call, FUNCTIONS[name]
    with warpfold.torch.exact():
        actual = function(x.to(device), dim=dim, keepdim=keepdim)
    assert_same(actual, reference(fractions, x, dim, keepdim))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_does_not_depend_on_its_batch(exact, device, name, dtype):
    function, fractions = FUNCTIONS[name]
    row = hard(24, 32, dtype=dtype, device=device)
    expected = reference(fractions, row)
    for batch in (1, 2, 3, 7, 8, 31, 64, 100, 255, 256, 500, 999, 1000):
        rows = torch.randn(batch, 24, 32, device=device).to(dtype)
        for at in {0, batch // 2, batch - 1, batch * 7 // 9}:
            rows[at] = row
            by_rows = rows.reshape(batch, -1)
            assert_same(function(by_rows, dim=1)[at], expected)
            assert_same(function(by_rows.t().contiguous(), dim=0)[at], expected)
            for dim in ((1, 2), (2, 1), (-1, -2)):
                assert_same(function(rows, dim=dim)[at], expected)
            assert_same(function(rows.permute(2, 0, 1).contiguous(), dim=(0, 2))[at], expected)
            assert_same(function(rows[at:], dim=(1, 2))[0], expected)


# Dtypes


def elements(dtype, device):
    # All dtypes have these numbers.
    x = torch.tensor([[0, 3, 1], [5, 2, 127], [0, 0, 0]], dtype=torch.float64).to(dtype)
    return (x * torch.tensor(1 + 2j, dtype=dtype) if dtype in COMPLEX[1:] else x).to(device)


def sum_of_converted(x, dtype):
    """The sum of rows, by Python's numbers, of elements that are converted first."""
    x = x.to(dtype).cpu()
    if dtype in COMPLEX:
        return torch.view_as_complex(reference(exact_sum, torch.view_as_real(x), [1]))
    if dtype in FLOATS:
        return reference(exact_sum, x, [1])
    if dtype is torch.bool:
        return x.any(1)
    bits = torch.iinfo(dtype).bits
    sums = [sum(row) % 2**bits for row in x.to(torch.int64).tolist()]
    is_signed = torch.iinfo(dtype).min < 0
    return torch.tensor([s - 2**bits if is_signed and s >= 2 ** (bits - 1) else s for s in sums], dtype=dtype)


@pytest.mark.filterwarnings("ignore:Casting complex", "ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS, *COMPLEX], ids=str)
def test_dtypes_of_sums(exact, device, dtype):
    x = elements(dtype, device)
    default = torch.int64 if dtype in INTEGERS or dtype is torch.bool else dtype
    assert_same(x.sum(1), sum_of_converted(x, default))
    for to in [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]:
        expected = sum_of_converted(x, to)
        assert_same(x.sum(1, dtype=to), expected)
        # The dtype of `out` counts as `dtype`.
        assert_same(torch.sum(x, 1, out=torch.empty_like(expected, device=device)), expected)
        if to in FLOATS:
            assert_same(x.mean(1, dtype=to), reference(exact_mean, x.to(to), [1]))


def test_integers_wrap(exact, device):
    x = torch.tensor([2**63 - 1, 2**63 - 1, 5], device=device)
    assert x.sum().item() == 3
    assert x.sum(dtype=torch.int8).item() == 3
    assert x.sum(dtype=torch.float64).item() == 2.0**64


def test_elements_are_converted_before_they_are_added(exact, device):
    x = torch.tensor([1 + 2**-20, 1 + 2**-20], dtype=torch.float64, device=device)
    assert x.sum(dtype=torch.float16).item() == 2.0
    x = torch.tensor([65504.0, 65504.0], dtype=torch.float16, device=device)
    assert x.sum(dtype=torch.float32).item() == 131008.0
    assert x.sum().item() == math.inf
    assert x.mean().item() == 65504.0


@pytest.mark.parametrize("dtype", COMPLEX[1:], ids=str)
def test_complex_elements(exact, device, dtype):
    real = dtype.to_real()
    x = torch.view_as_complex(hard(40, 60, 2, dtype=real, device=device))
    parts = torch.view_as_real(x)
    for dim, keepdim in ((None, False), ([0], False), ([1], True), ([0, 1], True)):
        dims = dim or [0, 1]
        for name in ("sum", "mean"):
            function, fractions = FUNCTIONS[name]
            expected = torch.view_as_complex(reference(fractions, parts, dims, keepdim))
            assert_same(function(x, dim=dim, keepdim=keepdim), expected)
        expected = reference(exact_norm, parts, [*dims, 2], keepdim)
        assert_same(vector_norm(x, dim=dim, keepdim=keepdim), expected.squeeze(-1) if keepdim else expected)
        moduli = reference(exact_norm, parts, [2])
        assert_same(vector_norm(x, 1, dim, keepdim), reference(exact_norm1, moduli, dims, keepdim))
        assert_same(vector_norm(x, math.inf, dim, keepdim), x.abs().amax(dims, keepdim))
    # Lazily conjugated and negated tensors.
    assert x.conj().is_conj() and x.conj().imag.is_neg()
    assert_same(x.conj().sum(0), torch.view_as_complex(reference(exact_sum, parts, [0])).conj().resolve_conj())
    assert_same(torch.ops.warpfold.sum(x.conj(), [0]), x.conj().sum(0))
    assert_same(x.conj().imag.sum(0), reference(exact_sum, -parts[..., 1], [0]))
    assert_same(vector_norm(x.conj()), reference(exact_norm, parts))


# Norms


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_other_norms(exact, device, dtype):
    x = hard(20, 30, dtype=dtype, device=device)
    x[x.abs() < x.abs().median()] = 0
    for dim, keepdim in ((None, False), ([0], True), ([-1], False)):
        dims = dim or [0, 1]
        assert_same(vector_norm(x, 0, dim, keepdim), (x != 0).cpu().long().sum(dims, keepdim).to(dtype))
        assert_same(vector_norm(x, math.inf, dim, keepdim), x.cpu().abs().amax(dims, keepdim))
        assert_same(vector_norm(x, -math.inf, dim, keepdim), x.cpu().abs().amin(dims, keepdim))
    for ord in (3, 0.5, -1, -2, 4):
        with pytest.raises(NotImplementedError, match="orders 0, 1, 2, inf and -inf"):
            vector_norm(x, ord)
        with pytest.raises(NotImplementedError, match="orders 0, 1, 2, inf and -inf"):
            x.norm(ord)


def test_dtypes_of_norms(exact, device):
    x = hard(300, dtype=torch.float16, device=device)
    for to in FLOATS[2:]:
        assert_same(vector_norm(x, dtype=to), reference(exact_norm, x.to(to)))
        assert_same(vector_norm(x, 1, dtype=to), reference(exact_norm1, x.to(to)))
        out = torch.empty((), dtype=to, device=device)
        assert_same(vector_norm(x, dtype=to, out=out), reference(exact_norm, x.to(to)))


def test_operators_that_are_composed_of_these(exact, device):
    x = hard(12, 15, dtype=torch.float32, device=device)
    norm, rows = reference(exact_norm, x), reference(exact_norm, x, [1])
    aten = torch.ops.aten
    for whole in (x.norm(), torch.norm(x), torch.linalg.norm(x), torch.linalg.matrix_norm(x), aten.norm.Scalar(x, 2)):
        assert_same(whole, norm)
    for by_rows in (x.norm(dim=1), torch.norm(x, 2, 1), torch.linalg.norm(x, dim=1), aten.norm.ScalarOpt_dim(x, 2, 1)):
        assert_same(by_rows, rows)
    wide = aten.norm.ScalarOpt_dim_dtype(x, 2, [1], False, dtype=torch.float64)
    assert_same(wide, reference(exact_norm, x.double(), [1]))
    for actual, expected in zip(aten._foreach_norm([x, x[0]], 2), (norm, rows[0]), strict=True):
        assert_same(actual, expected)
    parameters = [x.clone().requires_grad_(), x[0].clone().requires_grad_()]
    for parameter in parameters:
        parameter.grad = parameter.detach().clone()
    total = torch.nn.utils.get_total_norm([p.grad for p in parameters])
    assert_same(total, reference(exact_norm, torch.stack([norm, rows[0]])))
    y = hard(1000, dtype=torch.float32, device=device).clamp(-9, 9)
    total = reference(exact_sum, (y - y.amax()).exp()).to(device)
    assert_same(y.logsumexp(0), total.log() + y.amax())
    assert_same(x.sum_to_size(12, 1), reference(exact_sum, x, [1], True))


# `out=` and errors


def test_out(exact, device):
    x = hard(6, 8, dtype=torch.float32, device=device)
    expected = reference(exact_sum, x, [1])
    out = torch.empty(6, 3, device=device)[:, 1]
    assert_same(torch.sum(x, 1, out=out), expected)
    with pytest.warns(UserWarning, match="resized"):
        assert_same(torch.sum(x, 1, out=torch.empty(5, device=device)), expected)
    assert_same(torch.sum(x, 1, out=torch.empty(0, device=device)), expected)
    overlapping = x.clone()
    assert_same(torch.sum(overlapping, 1, out=overlapping[:, 0]), expected)
    for function in (torch.sum, torch.mean, vector_norm):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            function(x, dim=1, dtype=torch.float64, out=torch.empty(6, device=device))
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.sum(x, 1, out=torch.empty(1, device=device).expand(6))
    if device == "cuda":
        with pytest.raises(RuntimeError, match="same device"):
            torch.sum(x, 1, out=torch.empty(6))


@pytest.mark.parametrize("function", [torch.sum, torch.mean, vector_norm, torch.ops.warpfold.sum])
def test_wrong_dims(exact, device, function):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got -3"):
        function(x, dim=[-3])
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        function(x.sum(), dim=[1])
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times"):
        function(x, dim=[1, -1])
    for dim in (0, -1):
        assert function(x[0, 0], dim=[dim]).item() == 1


@pytest.mark.filterwarnings("ignore:Named tensors")
def test_wrong_dtypes(exact, device):
    whole, floats = torch.ones(3, dtype=torch.int32, device=device), torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="Input dtype must be either a floating point or complex"):
        whole.mean()
    with pytest.raises(RuntimeError, match="Optional dtype must be either a floating point or complex"):
        floats.mean(dtype=torch.int64)
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor"):
        vector_norm(whole)
    with pytest.raises(RuntimeError, match="without narrowing"):
        vector_norm(floats, dtype=torch.float16)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        small = floats.to(dtype)
        for function in (torch.sum, torch.mean, vector_norm):
            with pytest.raises(TypeError, match=r"convert them, for example by x\.float\(\)"):
                function(small)
        assert small.sum(dtype=torch.float32).item() == 3
    with pytest.raises(IndexError, match="non-zero size"):
        vector_norm(torch.ones(2, 0, device=device), math.inf, 1)
    with pytest.raises(RuntimeError, match=r"tensor\.rename\(None\)"):
        torch.ones(2, 3, names=("N", "C"), device=device).sum("N")


# Autograd

DIFFERENTIABLE = {
    "sum": lambda x: x.sum((0, 2)),
    "sum of all": torch.sum,
    "mean": lambda x: x.mean(1, keepdim=True),
    "norm": lambda x: vector_norm(x, dim=(1, 2)),
    "norm of order 1": lambda x: vector_norm(x, 1, dim=1),
    "norm of order inf": lambda x: vector_norm(x, math.inf, dim=1),
    "warpfold::sum": lambda x: torch.ops.warpfold.sum(x, [-1, 0]),
    "warpfold::mean": lambda x: torch.ops.warpfold.mean(x, [1], True),
    "warpfold::mean of all": torch.ops.warpfold.mean,
    "warpfold::norm": lambda x: torch.ops.warpfold.norm(x, 2, [1, 2]),
    "warpfold::norm of order 0": lambda x: torch.ops.warpfold.norm(x, 0, [1]),
    "warpfold::norm of order 1": lambda x: torch.ops.warpfold.norm(x, 1, [1]),
    "warpfold::norm of order inf": lambda x: torch.ops.warpfold.norm(x, math.inf, [1], True),
    "warpfold::norm of order -inf": lambda x: torch.ops.warpfold.norm(x, -math.inf),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(exact, device, name, dtype):
    function, x = DIFFERENTIABLE[name], torch.randn(3, 4, 2, dtype=dtype, device=device, requires_grad=True)
    # Formulas of `torch.library` have no forward mode.
    is_ours = name.startswith("warpfold")
    assert torch.autograd.gradcheck(function, x, check_forward_ad=not is_ours, check_batched_grad=not is_ours)
    assert torch.autograd.gradgradcheck(function, x)


def test_gradients_of_other_dtypes(device):
    x = torch.randn(4, 3, device=device, requires_grad=True)
    for dtype in (torch.float64, torch.float16):
        with warpfold.torch.exact():
            (plain,) = torch.autograd.grad(x.sum(1, dtype=dtype).abs().sum(), x)
        (ours,) = torch.autograd.grad(torch.ops.warpfold.sum(x, [1], dtype=dtype).abs().sum(), x)
        assert_same(ours, plain)


def test_gradients_at_zero_and_of_equal_elements(device):
    x = torch.tensor([[0.0, 0.0, 0.0], [2.0, -2.0, 1.0], [0.5, -0.5, 0.5]], device=device, requires_grad=True)
    for ord in (1, 2, math.inf, -math.inf):
        (plain,) = torch.autograd.grad(vector_norm(x, ord, 1).sum(), x)
        (ours,) = torch.autograd.grad(torch.ops.warpfold.norm(x, ord, [1]).sum(), x)
        torch.testing.assert_close(ours, plain)
    # PyTorch has no gradient of this one.
    (ours,) = torch.autograd.grad(torch.ops.warpfold.norm(x, 0, [1]).sum(), x)
    assert_same(ours, torch.zeros(3, 3))


@pytest.mark.parametrize("arguments", [(), ([0],), ([1, -2], True)], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "norm"])
def test_opcheck(device, name, arguments):
    operator = getattr(torch.ops.warpfold, name).default
    for x in (torch.randn(3, 4, device=device, requires_grad=True), torch.randn(4, 3, device=device).bfloat16().t()):
        for ord in (0, 1, 2, math.inf) if name == "norm" else (None,):
            torch.library.opcheck(operator, (x, *(() if ord is None else (ord,)), *arguments))
    torch.library.opcheck(operator, (torch.randn(3, 4, device=device),), {"dtype": torch.float64})


def test_functorch(exact, device):
    x = hard(5, 7, dtype=torch.float64, device=device)
    for function, fractions in FUNCTIONS.values():
        assert_same(torch.vmap(function)(x), reference(fractions, x, [1]))
        assert_same(torch.vmap(function, in_dims=1)(x), reference(fractions, x, [0]))
        value, tangent = torch.func.jvp(function, (x,), (torch.ones_like(x),))
        assert_same(value, reference(fractions, x))
        torch.testing.assert_close(tangent, torch.func.grad(function)(x).sum())
    y = torch.randn(4, dtype=torch.float64, device=device)
    hessian = torch.func.hessian(vector_norm)(y)
    torch.testing.assert_close(hessian, (torch.eye(4, device=device) - torch.outer(y, y) / y.dot(y)) / y.norm())


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_our_operators_and_functorch(device):
    x = hard(5, 7, dtype=torch.float64, device=device)
    for name, (_, fractions) in list(FUNCTIONS.items())[:3]:
        operator = getattr(torch.ops.warpfold, name)
        assert_same(torch.vmap(operator)(x), reference(fractions, x, [1]))
        with pytest.raises(NotImplementedError, match="no forward mode"):
            torch.func.jvp(operator, (x,), (x,))
        with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="no forward mode"):
            operator(torch.autograd.forward_ad.make_dual(x, x))


def test_backward_passes_are_exact_in_any_thread(exact, device):
    weights = hard(100, 8, dtype=torch.float32, device=device)
    bias = torch.zeros(8, device=device, requires_grad=True)
    loss = ((torch.zeros(100, 8, device=device) + bias) * weights).sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    assert_same(bias.grad, reference(exact_sum, weights, [0]))


# The state


def bits_of_all(x):
    results = [x.sum(), x.sum(0), x.mean(1), x.mean(), vector_norm(x), vector_norm(x, 1, 0), vector_norm(x, 3, 1)]
    results += torch._foreach_norm([x, x[0]])
    results.append(torch.sum(x, 0, out=torch.empty_like(x[0])))
    return torch.cat([result.flatten() for result in results])


def test_the_original_operators_come_back(device):
    x = hard(300, 200, dtype=torch.float32, device=device)
    expected, plain = reference(exact_sum, x), bits_of_all(x)
    assert x.sum().item() != expected.item()
    for _ in range(3):
        warpfold.torch.enable()
        assert_same(x.sum(), expected)
        warpfold.torch.enable()
        with warpfold.torch.exact():
            assert_same(x.sum(), expected)
        assert_same(x.sum(), expected)
        warpfold.torch.disable()
        assert_same(bits_of_all(x), plain)
        warpfold.torch.disable()


def test_blocks_are_nested(device):
    x = hard(1000, dtype=torch.float32, device=device)
    expected, plain = reference(exact_sum, x), x.sum()
    block = warpfold.torch.exact()
    with block:
        with block, warpfold.torch.exact():
            assert_same(x.sum(), expected)
        assert_same(x.sum(), expected)
        warpfold.torch.enable()
        warpfold.torch.disable()
        assert_same(x.sum(), expected)
    assert_same(x.sum(), plain)
    with pytest.raises(ZeroDivisionError), warpfold.torch.exact():
        assert warpfold.torch.is_enabled()
        raise ZeroDivisionError
    assert_same(x.sum(), plain)
    assert_same(warpfold.torch.exact()(torch.sum)(x), expected)
    assert_same(x.sum(), plain)


def test_our_operators_are_exact_at_all_times(device):
    x = hard(20, 100, dtype=torch.float32, device=device)
    assert_same(torch.ops.warpfold.sum(x, [1]), reference(exact_sum, x, [1]))
    assert_same(torch.ops.warpfold.mean(x), reference(exact_mean, x))
    assert_same(torch.ops.warpfold.norm(x, dim=[0], keepdim=True), reference(exact_norm, x, [0], True))
    assert of_values(exact_sum, [1.0, 2.0], torch.float32) == 3.0
