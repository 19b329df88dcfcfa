"""The corpus: messy files, and what each of them must become, one module per kind of mess."""

from tests.corpus.case import Case
from tests.corpus.cases import (
    dates,
    delimiters,
    encodings,
    headers,
    layout,
    numbers,
    packing,
    refusals,
    suspects,
    targets,
    typed,
    words,
    workbooks,
)

CASES: tuple[Case, ...] = (
    *delimiters.CASES,
    *encodings.CASES,
    *headers.CASES,
    *layout.CASES,
    *numbers.CASES,
    *dates.CASES,
    *words.CASES,
    *suspects.CASES,
    *targets.CASES,
    *workbooks.CASES,
    *typed.CASES,
    *packing.CASES,
    *refusals.CASES,
)
