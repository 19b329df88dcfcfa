"""Parameters of HTTP requests in the service's sentences, as options of the command line."""

import re

_PARAMETER = re.compile(
    r"(?<![\w?&'\"])(delimiter|quote|encoding|decimal|header|skip|comment|index|sheet)=(\w*)"
)


def in_options(text: str) -> str:
    """`set header=false` as `set --no-header`, and `skip= sets` as `--skip sets`."""
    return _PARAMETER.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    name, value = found.groups()
    match value:
        case "" | "true":
            return f"--{name}"
        case "false":
            return f"--no-{name}"
    return f"--{name} {value}"
