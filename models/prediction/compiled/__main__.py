"""Compiles the kernels into numba's cache: `python -m models.prediction.compiled`."""

import os

from models.prediction.compiled.compiler import compiler

_NICENESS = 10  # answers of the service that waits for the kernels come first

if __name__ == "__main__":
    os.nice(_NICENESS)
    raise SystemExit(not compiler().wait())
