"""Tables as the matrices that scikit-learn's linear models and trees take."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from worker.baselines.columns import Table

Matrix = Float[np.ndarray, "rows columns"]
Encode = Callable[[Table], Matrix]

MOST_ONE_HOT = 100  # levels of a category in a linear model; rarer ones share a column
MOST_TREE_LEVELS = 255  # as many as HistGradientBoosting takes; rarer ones count as one level
BLOCK_CELLS = 5_000_000  # of held-out rows encoded at a time: 40 MB


def linear_encoder(table: Table) -> Encode:
    """Fit an encoder to the table: missing numbers are the median, levels are one-hot.

    Every column is standardised. Unknown levels count as rare ones.
    """
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    one_hot = OneHotEncoder(
        max_categories=MOST_ONE_HOT, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    parts = [
        (part, values)
        for part, values in ((imputer, _numbers), (one_hot, _categories))
        if values(table).shape[1]
    ]
    joined = np.concatenate([part.fit_transform(read(table)) for part, read in parts], axis=1)
    scaler = StandardScaler().fit(joined)

    def encode(rows: Table) -> Matrix:
        joined = np.concatenate([part.transform(read(rows)) for part, read in parts], axis=1)
        scaled: Matrix = scaler.transform(joined)
        return scaled

    return encode


def tree_encoder(table: Table) -> Encode:
    """Fit an encoder to the table: numbers as they are, then the codes of the levels.

    Missing values and unknown levels are NaN.
    """
    from sklearn.preprocessing import OrdinalEncoder  # noqa: PLC0415

    if not table.categories.shape[1]:
        return _numbers
    codes = OrdinalEncoder(
        max_categories=MOST_TREE_LEVELS,
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
    ).fit(table.categories)

    def encode(rows: Table) -> Matrix:
        return np.concatenate([rows.numbers, codes.transform(rows.categories)], axis=1)

    return encode


def in_blocks(predict: Callable[[Matrix], np.ndarray], encode: Encode, table: Table) -> np.ndarray:
    """Predictions of all rows. Only some are encoded at a time, to bound the memory."""
    width = encode(table[:1]).shape[1]
    block = max(1, BLOCK_CELLS // width)
    return np.concatenate(
        [predict(encode(table[i : i + block])) for i in range(0, len(table), block)]
    )


def _numbers(table: Table) -> Matrix:
    return table.numbers


def _categories(table: Table) -> np.ndarray:
    return table.categories
