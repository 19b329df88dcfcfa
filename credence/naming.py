"""What a model is called if nobody said it."""

import re


def model_name(data_name: str) -> str:
    """A valid model name from a data set's: `Concrete (v2).csv` becomes `concrete-v2`."""
    stem = data_name.partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:63] or "model"
