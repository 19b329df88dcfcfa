"""How text is cut into tokens and windows."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval

from models.config.common import STRICT


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Tokens are words between white space, or characters; `steps` of them make a window.

    The `max_vocabulary` most frequent tokens that come `min_count` times are known, the end of a
    line and the unknown token among them. Gradients go back to the beginning of a window.
    """

    __pydantic_config__ = STRICT
    level: Literal["word", "character"] = "word"
    max_vocabulary: Annotated[int, Interval(ge=3, le=100_000)] = 10_000
    min_count: Annotated[int, Interval(ge=1, le=1_000_000)] = 1
    steps: Annotated[int, Interval(ge=1, le=1_000)] | None = None
