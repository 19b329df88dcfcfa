"""A page of the service as one file, with its styles and scripts inline."""

import re
from collections.abc import Mapping

_STYLES = re.compile(r'<link rel="stylesheet" href="([^"]+)"([^>]*)>')
_SCRIPT = re.compile(r'<script src="([^"]+)"></script>')


def references(page: str) -> list[str]:
    """The addresses of a page's styles and scripts."""
    return [found[1] for kind in (_STYLES, _SCRIPT) for found in kind.finditer(page)]


def with_references(page: str, texts: Mapping[str, str]) -> str:
    """The page with its styles and scripts inline; `texts` has the text for each address."""
    page = _STYLES.sub(lambda found: f"<style{found[2]}>{texts[found[1]]}</style>", page)
    return _SCRIPT.sub(lambda found: f"<script>{_escape_end_tag(texts[found[1]])}</script>", page)


def _escape_end_tag(script: str) -> str:
    """Replace `</script`, which ends the element; in JavaScript strings `<\\/` means `</`."""
    return script.replace("</script", r"<\/script")
