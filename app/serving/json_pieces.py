"""Large arrays as JSON, written in pieces, so that the event loop goes on in between.

orjson keeps the interpreter to itself while it writes: 60 MB of draws took 0.2 s, in which nobody
was answered, though a thread wrote them.
"""

from typing import Any

import numpy as np
import orjson

PIECE_VALUES = 2**15  # about a millisecond
MOST_PARTS = 1000  # of a list in which arrays are looked for


def in_pieces(value: Any) -> Any:
    """A value for `orjson.dumps`, with the JSON of each large array of numbers in its place."""
    match value:
        case np.ndarray() if value.size > PIECE_VALUES and value.dtype.kind in "fiub":
            return orjson.Fragment(_written(value))
        case dict():
            return {name: in_pieces(one) for name, one in value.items()}
        case list() if len(value) <= MOST_PARTS:
            return [in_pieces(one) for one in value]
        case _:
            return value


def _written(values: np.ndarray) -> bytes:
    each = values[0].size
    if each > PIECE_VALUES:
        return b"[" + b",".join(_written(row) for row in values) + b"]"
    step = PIECE_VALUES // max(each, 1)
    pieces = (_dumped(values[i : i + step]) for i in range(0, len(values), step))
    return b"[" + b",".join(piece[1:-1] for piece in pieces) + b"]"


def _dumped(values: np.ndarray) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
