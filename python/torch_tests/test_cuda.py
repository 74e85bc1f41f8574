"""What only a GPU has: the bits of the CPU, CUDA graphs, streams, and fused norms."""

import math

import pytest
import torch
import warpfold.torch
from reference import FLOATS, assert_same, exact_mean, exact_norm, exact_norm1, exact_sum, hard, reference

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

vector_norm = torch.linalg.vector_norm


def several(x):
    return (
        x.sum(), x.sum(0), x.mean(1), x.mean((0, 1), keepdim=True), vector_norm(x), vector_norm(x, 1, 1), x.norm(dim=0),
        vector_norm(x, math.inf, 1), vector_norm(x, 0, 0), x.sum(dtype=torch.float64), x.t().sum((1, 0)),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_bits_are_those_of_the_cpu(exact, dtype):
    for shape in ((1, 1), (3, 70_001), (70_001, 3), (300, 400), (0, 5)):
        x = hard(*shape, dtype=dtype)
        # There is no largest element of none.
        if x.numel():
            for actual, expected in zip(several(x.cuda()), several(x), strict=True):
                assert actual.is_cuda
                assert_same(actual, expected)
        assert_same(x.cuda().sum(0), x.sum(0))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_cuda_graphs(exact, dtype):
    x = hard(40, 50, dtype=dtype, device="cuda")
    for _ in range(2):
        several(x)
    torch.cuda.synchronize()
    graph, out = torch.cuda.CUDAGraph(), torch.empty(40, dtype=dtype, device="cuda")
    with torch.cuda.graph(graph):
        results = several(x)
        torch.sum(x, 1, out=out)
    for _ in range(3):
        x.copy_(hard(40, 50, dtype=dtype))
        graph.replay()
        # Eager calls between the replays use other memory.
        eager = several(x)
        for actual, expected in zip(results, eager, strict=True):
            assert_same(actual, expected)
        assert_same(results[1], reference(exact_sum, x, [0]))
        assert_same(out, reference(exact_sum, x, [1]))
        assert_same(results[4], reference(exact_norm, x))


def test_a_first_call_in_a_capture(exact):
    x = hard(33, 65, dtype=torch.bfloat16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = x.mean(0, keepdim=True)
    graph.replay()
    assert_same(total, reference(exact_mean, x, [0], True))


def test_streams(exact):
    values = hard(100, 100, dtype=torch.float32)
    expected = reference(exact_sum, values, [0])
    pinned, side = values.pin_memory(), torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            x = torch.zeros(100, 100, device="cuda")
            torch.cuda._sleep(50_000_000)
            x.copy_(pinned, non_blocking=True)
            total = x.sum(0)
            x.fill_(0)
            stream.synchronize()
        assert_same(total, expected)


def test_fused_norms_of_lists(exact):
    xs = [hard(n, 30, dtype=torch.float32, device="cuda") for n in (1, 5, 300)]
    for ord, fractions in ((2, exact_norm), (1, exact_norm1)):
        for actual, x in zip(torch._foreach_norm(xs, ord), xs, strict=True):
            assert_same(actual, reference(fractions, x))
    parameters = [torch.zeros_like(x, requires_grad=True) for x in xs]
    for parameter, x in zip(parameters, xs, strict=True):
        parameter.grad = x.clone()
    total = torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
    assert_same(total, reference(exact_norm, torch.stack([reference(exact_norm, x) for x in xs])))


def test_graphs_of_the_compiler(exact):
    compiled = torch.compile(lambda x: (x * 2).sum(1), mode="reduce-overhead")
    for _ in range(4):
        x = hard(50, 60, dtype=torch.float32, device="cuda")
        assert_same(compiled(x), reference(exact_sum, x * 2, [1]))


def test_a_tensor_on_another_device_is_an_error():
    with warpfold.torch.exact(), pytest.raises(RuntimeError, match="same device"):
        torch.sum(torch.ones(3), 0, out=torch.empty((), device="cuda"))
