from collections.abc import Callable
from typing import Any

HASHED: int
IN_A_ROW: int
CALLS: tuple[tuple[str, Callable[..., Any], Callable[..., Any]], ...]

def main() -> None: ...
