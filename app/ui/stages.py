"""Stages of a training in words."""

import re

_WORDS = {
    "fit": "fit",
    "swag": "averaging weights",
    "laplace": "fit under the chosen prior",
    "chains": "sampling weights",
    "diverged": "it diverged and is dropped",
}
_TRIED = re.compile(r"(shape|candidate)-(\d+)-")
_TRIES = {"shape": "trying a network", "candidate": "trying a recipe"}


def stage_words(stage: str) -> str:
    """Such as `trying a network, 1: fit` for `shape-0-fit`. `inWords` in job.js writes the same."""
    refit = stage.removeprefix("refit-")
    tried = _TRIED.match(refit)
    name = refit[tried.end() :] if tried else refit
    if name.startswith("prune-"):
        words = f"{100 * float(name.removeprefix('prune-')):g} % pruned"
    else:
        words = _WORDS.get(name, name)
    before = f"{_TRIES[tried[1]]}, {int(tried[2]) + 1}: " if tried else ""
    return before + words + ("" if refit == stage else ", with all rows")
