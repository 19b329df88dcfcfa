"""Texts of a prediction: strings in, what a language model makes of them out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.http.validation import pointer
from app.serving.values import check_types
from core.exceptions import Invalid
from models.features.columns import Columns, InputColumn
from models.language.prediction import TextPrediction


def is_text(features: Sequence[InputColumn]) -> bool:
    """Whether these are the inputs of a language model: one column of texts."""
    return [feature.type for feature in features] == ["text"]


def refuse_texts(features: Sequence[InputColumn], path: str = "/model") -> None:
    """Raise `Invalid` for a language model where only rows of features can be read."""
    if is_text(features):
        message = "is a language model, which is asked in JSON by POST /predict alone"
        raise Invalid([(path, message)])


def read_texts(inputs: Any, feature: InputColumn) -> Columns:
    """The column of a list of strings, of which any may be empty.

    Raises:
        Invalid: at the first value that is no string.
    """
    if not isinstance(inputs, list):
        raise Invalid([("/inputs", "must be a list of strings: this is a language model")])
    check_types(inputs, lambda i: pointer(("inputs", i)), {str}, "must be a string")
    return {feature.name: np.array([*inputs, None], dtype=object)[:-1]}


def text_fields(prediction: TextPrediction) -> dict[str, Any]:
    """What an answer says of texts, in their order."""
    return {
        "log_likelihood": prediction.log_likelihood,
        "perplexity": prediction.perplexity,
        "token_log_likelihoods": prediction.token_log_likelihoods,
        "next_tokens": [
            [{"token": found.token, "probability": found.probability} for found in row]
            for row in prediction.next_tokens
        ],
        "entropy": prediction.entropy,
    }
