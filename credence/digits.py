"""Numbers as people write them: 346,512 and 0.0123 rather than 3.465e+05 and 1.23e-02."""

import math

_MOST = 7  # digits before the point; a larger number has an exponent, as one below 0.0001
_GROUPED = 5  # digits before the point from which commas group them: a year has none


def digits(value: float, significant: int = 4) -> str:
    """The number with so many significant digits, and all those before the point."""
    short = f"{value:.{significant}g}"
    if not value or not math.isfinite(value):
        return short
    before = math.floor(math.log10(abs(float(short)))) + 1
    if not significant <= before <= _MOST:
        return short
    return f"{value:,.0f}" if before >= _GROUPED else f"{value:.0f}"
