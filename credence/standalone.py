"""A page of the service as one file: what it refers to is put into it."""

import re
from collections.abc import Callable

_STYLES = re.compile(r'<link rel="stylesheet" href="([^"]+)"([^>]*)>')
_SCRIPT = re.compile(r'<script src="([^"]+)"></script>')


def in_one_file(page: str, fetch: Callable[[str], str]) -> str:
    """The page with its styles and scripts inline.

    Args:
        fetch: the text at an address that the page has for one of them.
    """
    page = _STYLES.sub(lambda found: f"<style{found[2]}>{fetch(found[1])}</style>", page)
    return _SCRIPT.sub(lambda found: f"<script>{_unable_to_end(fetch(found[1]))}</script>", page)


def _unable_to_end(script: str) -> str:
    """Within a string of JavaScript `<\\/` is `</`, and ends no element."""
    return script.replace("</script", r"<\/script")
