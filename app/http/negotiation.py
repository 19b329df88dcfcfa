"""Content negotiation by the `Accept` header (RFC 9110, §12.5.1)."""

from collections.abc import Sequence
from functools import lru_cache

from fastapi import Request

from app.errors import NotAcceptable

Range = tuple[str, float]  # such as "application/*", and its quality from 0 to 1


def negotiate(request: Request, offered: Sequence[str]) -> str:
    """The offered media type with the highest quality; the first one if several are equal.

    Raises:
        NotAcceptable: the request accepts none of them.
    """
    accept = ",".join(request.headers.getlist("accept")) or "*/*"
    return _best(accept, tuple(offered))


@lru_cache(maxsize=64)
def _best(accept: str, offered: tuple[str, ...]) -> str:
    """As `negotiate`. It is cached, because clients send few different headers."""
    ranges = [_range(part) for part in accept.split(",")]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) == 0:
        raise NotAcceptable(f"Accept must allow {' or '.join(offered)}")
    return best


def _range(text: str) -> Range:
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((p.removeprefix("q=") for p in parameters if p.startswith("q=")), "1")
    return media_range, float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0


def _quality(media_type: str, ranges: Sequence[Range]) -> float:
    """The quality of the most specific range that matches."""
    for pattern in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        for media_range, quality in ranges:
            if media_range == pattern:
                return quality
    return 0.0
