"""Reads a file as an upload is read: in a child, or here if it is small."""

from core.datasets import apart
from core.datasets.apart import Workplace
from core.datasets.files.opening import Opened
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.process.memory_budget import MemoryBudget

BUDGET = 2**32
DEFAULT = ReadingOptions()


def read(file: Opened, max_bytes: int, options: ReadingOptions = DEFAULT) -> Source:
    """The columns of the file; its table stays mapped."""
    with apart.read(file, options, Workplace(max_bytes, MemoryBudget(BUDGET))) as source:
        return source
