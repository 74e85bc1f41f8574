from collections.abc import Sequence
from typing import Any

__all__ = ["mean", "norm", "sum"]

type _Axis = int | Sequence[int] | None
type _SplitEvery = int | dict[int, int] | None

def sum(
    a: Any, axis: _Axis = None, keepdims: bool = False, split_every: _SplitEvery = None, dtype: Any = None
) -> Any: ...
def mean(a: Any, axis: _Axis = None, keepdims: bool = False, split_every: _SplitEvery = None) -> Any: ...
def norm(a: Any, axis: _Axis = None, keepdims: bool = False, split_every: _SplitEvery = None) -> Any: ...
