"""Which of our media types a caller wants to read: the `Accept` header of RFC 9110, §12.5.1."""

from collections.abc import Sequence

from fastapi import Request

from app.errors import NotAcceptable

Range = tuple[str, float]  # such as "application/*", and how much it is wanted, from 0 to 1


def negotiate(request: Request, offered: Sequence[str]) -> str:
    """The media type that is wanted most; the first one of several that are wanted equally.

    Raises:
        NotAcceptable: if none is wanted; the message lists them.
    """
    accept = ",".join(request.headers.getlist("accept")) or "*/*"
    ranges = [_range(part) for part in accept.split(",")]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) == 0:
        raise NotAcceptable(f"answers come as {' or '.join(offered)}: Accept one of them")
    return best


def _range(text: str) -> Range:
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((p.removeprefix("q=") for p in parameters if p.startswith("q=")), "1")
    return media_range, float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0


def _quality(media_type: str, ranges: Sequence[Range]) -> float:
    """That of the range which says most about the media type."""
    for pattern in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        for media_range, quality in ranges:
            if media_range == pattern:
                return quality
    return 0.0
