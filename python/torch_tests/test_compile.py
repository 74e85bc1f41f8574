"""Functions of `torch.compile`: the graphs that are lowered, the results, and what was compiled without exact sums."""

import math

import pytest
import torch
import torch.nn.functional as F
import warpfold.torch
from reference import assert_same, exact_mean, exact_norm, exact_sum, hard, reference
from torch._functorch import config as functorch_config
from torch._inductor import config, decomposition
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.graph import GraphLowering
from torch._inductor.output_code import CompiledFxGraph

vector_norm = torch.linalg.vector_norm


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def lowered(monkeypatch):
    """The operators of floats in all graphs that the compiler lowers from now on, after its last pass."""
    names, lower = [], GraphLowering.__init__

    def record(self, graph_module, *args, **kwargs):
        for node in graph_module.graph.nodes:
            values = torch.utils._pytree.tree_leaves(node.meta.get("val")) if node.op == "call_function" else []
            dtypes = [value.dtype for value in values if isinstance(value, torch.Tensor)]
            if any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes):
                names.append(str(node.target))
        lower(self, graph_module, *args, **kwargs)

    monkeypatch.setattr(GraphLowering, "__init__", record)
    # A graph from the cache is not lowered.
    with config.patch(fx_graph_cache=False), functorch_config.patch(enable_autograd_cache=False):
        yield names


def reductions(names):
    return [name for name in names if any(part in name.lower() for part in ("sum.", "mean.", "norm.", "softmax"))]


def loss(x, w):
    """A function with sums of its own, of decompositions, and of the backward pass."""
    h = F.rms_norm(x @ w, (w.shape[1],)) + x.mean(0)[: w.shape[1]]
    h = F.normalize(torch.softmax(h, -1) + h.logsumexp(1, keepdim=True), dim=1)
    return h.sum() + F.cross_entropy(h, h.argmax(1)) + h.norm(1) + torch.dist(h, x[:, : w.shape[1]]) + h.nansum()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_no_inexact_reduction_is_left(exact, device, lowered, dtype, dynamic):
    x = torch.randn(16, 12, device=device, dtype=dtype, requires_grad=True)
    w = torch.randn(12, 8, device=device, dtype=dtype, requires_grad=True)
    torch.compile(loss, dynamic=dynamic)(x, w).backward()
    # The forward and the backward graph.
    assert lowered.count("warpfold.sum.default") > 6
    assert set(reductions(lowered)) == {"warpfold.sum.default", "warpfold.mean.default", "warpfold.norm.default"}


def test_inexact_reductions_are_found_where_they_are(device, lowered):
    x, w = torch.randn(16, 12, device=device), torch.randn(12, 8, device=device)
    torch.compile(loss)(x, w)
    assert "aten.sum.dim_IntList" in reductions(lowered)
    assert not any(name.startswith("warpfold.") for name in lowered)


def several(x):
    y = x * 2
    return (
        y.sum(0), y.sum(), y.mean(-1), y.mean(), vector_norm(y), vector_norm(y, 1, 0), y.norm(dim=1),
        vector_norm(y, math.inf, 1), vector_norm(y, 0), y.sum((0, 1), dtype=torch.float64), y.int().sum(),
        y.t().sum(0, keepdim=True),
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_results_are_those_of_eager_calls(exact, device, dtype, backend):
    compiled = torch.compile(several, backend=backend)
    x = hard(30, 40, dtype=dtype, device=device)
    assert_same(compiled(x)[0], reference(exact_sum, x * 2, [0]))
    for actual, expected in zip(compiled(x), several(x), strict=True):
        assert_same(actual, expected)


def test_dynamic_shapes(exact, device):
    compiled = torch.compile(lambda x: (x.sum(0), x.mean(), vector_norm(x, dim=1)), dynamic=True, fullgraph=True)
    for rows in (2, 9, 33):
        x = hard(rows, 3 * rows, dtype=torch.float32, device=device)
        total, mean, norm = compiled(x)
        assert_same(total, reference(exact_sum, x, [0]))
        assert_same(mean, reference(exact_mean, x))
        assert_same(norm, reference(exact_norm, x, [1]))


def test_gradients(exact, device):
    weights = hard(64, 8, dtype=torch.float32, device=device)
    bias = torch.zeros(8, device=device, requires_grad=True)
    torch.compile(lambda bias: ((torch.zeros(64, 8, device=device) + bias) * weights).sum())(bias).backward()
    assert_same(bias.grad, reference(exact_sum, weights, [0]))


@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
def test_complex_elements(exact, device):
    x = torch.view_as_complex(hard(20, 30, 2, dtype=torch.float32, device=device)).clone()
    assert_same(torch.compile(lambda x: (x * 2).sum(0))(x), (x * 2).sum(0))


def test_a_function_that_was_compiled_before_is_an_error(device):
    x = hard(500, dtype=torch.float32, device=device)
    compiled = torch.compile(lambda x: (x * 2).sum())
    plain = compiled(x)
    with warpfold.torch.exact(), pytest.raises(RuntimeError, match=r"without warpfold\.torch.*compiler\.reset"):
        compiled(x)
    assert_same(compiled(x), plain)


def test_a_backward_pass_whose_forward_pass_was_compiled_before_is_an_error(device):
    x = hard(20, 30, dtype=torch.float32, device=device).requires_grad_()
    compiled = torch.compile(lambda x: (x.softmax(1) * x.norm(dim=1, keepdim=True)).sum())
    # PyTorch compiles the backward pass when it is called first, from a graph that it made with the forward pass.
    loss = compiled(x)
    with warpfold.torch.exact(), pytest.raises(RuntimeError, match=r"without warpfold\.torch"):
        loss.backward()
    compiled(x).backward()
    loss = compiled(x)
    with warpfold.torch.exact(), pytest.raises(RuntimeError, match=r"without warpfold\.torch"):
        loss.backward()


def test_a_backward_pass_stays_exact(device):
    weights = hard(64, 8, dtype=torch.float32, device=device)
    bias = torch.zeros(8, device=device, requires_grad=True)
    compiled = torch.compile(lambda bias: ((torch.zeros(64, 8, device=device) + bias) * weights).sum())
    with warpfold.torch.exact():
        loss = compiled(bias)
    loss.backward()
    assert_same(bias.grad, reference(exact_sum, weights, [0]))
    with warpfold.torch.exact():
        compiled(bias).backward()
    assert_same(bias.grad, 2 * reference(exact_sum, weights, [0]))


def test_a_function_stays_exact(device):
    x = hard(500, dtype=torch.float32, device=device)
    expected = reference(exact_sum, x * 2)
    compiled = torch.compile(lambda x: (x * 2).sum())
    plain = compiled(x)
    assert plain.item() != expected.item()
    # Nor is a graph taken from the cache that was compiled in the other state.
    for _ in range(2):
        torch.compiler.reset()
        with warpfold.torch.exact():
            assert_same(compiled(x), expected)
        assert_same(compiled(x), expected)
        torch.compiler.reset()
        assert_same(compiled(x), plain)


class UsersPass(CustomGraphPass):
    def __init__(self):
        self.calls = 0

    def __call__(self, graph):
        self.calls += 1

    def uuid(self):
        return "of the test"


def test_passes_of_the_user(device):
    x = hard(500, dtype=torch.float32, device=device)
    first = UsersPass()
    with config.patch(post_grad_custom_post_pass=first, joint_custom_pre_pass=first, force_disable_caches=True):
        with warpfold.torch.exact():
            assert_same(torch.compile(lambda x: (x * 2).sum())(x), reference(exact_sum, x * 2))
        assert first.calls == 2
        assert config.post_grad_custom_post_pass is first and config.joint_custom_pre_pass is first
    # An option of one function replaces the pass.
    compiled = torch.compile(lambda x: (x * 3).sum(), options={"post_grad_custom_post_pass": UsersPass()})
    with warpfold.torch.exact(), pytest.raises(RuntimeError, match=r"without warpfold\.torch"):
        compiled(x)


def test_cache_keys_have_the_users_pass(device):
    with config.patch(joint_custom_pre_pass=UsersPass(), post_grad_custom_post_pass=None), warpfold.torch.exact():
        both, ours = config.joint_custom_pre_pass.uuid(), config.post_grad_custom_post_pass.uuid()
        assert ours and both == (ours, "of the test")
    with config.patch(joint_custom_pre_pass=lambda graph: None), warpfold.torch.exact():
        assert config.joint_custom_pre_pass.uuid() is None


def test_the_compiler_is_restored():
    norm, norms = torch.ops.aten.linalg_vector_norm.default, torch.ops.aten._foreach_norm.Scalar

    def state():
        calls = CompiledFxGraph.__call__, CompiledFxGraph.post_compile
        tables = [table.get(norm) for table in (decomposition.decompositions, decomposition.select_decomp_table())]
        return calls, tables, config.joint_custom_pre_pass, config.post_grad_custom_post_pass

    before = state()
    with warpfold.torch.exact():
        assert all(a != b for a, b in zip(before, state(), strict=True))
        assert norms in decomposition.select_decomp_table()
    assert state() == before
    assert norms not in decomposition.select_decomp_table()


def test_blocks_in_a_compiled_function(device):
    x = hard(30, 20, dtype=torch.float32, device=device)

    def function(x):
        with warpfold.torch.exact():
            return x.sum(0)

    # The compiler leaves such a function to Python.
    compiled = torch.compile(function)
    for _ in range(3):
        assert_same(compiled(x), reference(exact_sum, x, [0]))
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="exact.__enter__"):
        torch.compile(function, fullgraph=True)(x)


def test_an_operator_without_replacement_is_an_error(exact, device):
    x = torch.randn(3, 4, device=device)
    with pytest.raises(Exception, match=r"cannot make prims\.sum\.default exact"):
        torch.compile(lambda x: torch.ops.prims.sum.default(x, [0]))(x)


def test_norms_of_other_orders_are_errors(exact, device):
    with pytest.raises(NotImplementedError, match="orders 0, 1, 2, inf and -inf"):
        torch.compile(lambda x: vector_norm(x, 3))(torch.randn(5, device=device))


def test_norms_of_lists(exact, device, lowered):
    xs = [hard(n, 30, dtype=torch.float32, device=device) for n in (1, 9)]
    for actual, x in zip(torch.compile(torch._foreach_norm, fullgraph=True)(xs), xs, strict=True):
        assert_same(actual, reference(exact_norm, x))
    assert reductions(lowered) == ["warpfold.norm.default"] * 2


def test_our_operators_in_a_graph(device, lowered):
    x = hard(20, 30, dtype=torch.float32, device=device)
    compiled = torch.compile(lambda x: torch.ops.warpfold.sum(x.t(), [1]), fullgraph=True)
    assert_same(compiled(x), reference(exact_sum, x, [0]))
    assert reductions(lowered) == ["warpfold.sum.default"]
