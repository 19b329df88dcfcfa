"""The inputs of tables: widths, bounds, missing and unknown values, and whose input each is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.config import FeatureConfig
from models.features.categories import CategoryEncoder
from models.features.encoders import BOUND
from models.features.feature_encoder import FeatureEncoder

ROWS = 400
TYPES = {
    "size": "number", "wet": "boolean", "city": "category", "day": "datetime", "price": "number",
}  # fmt: skip


def table(rows: int = ROWS, seed: int = 0) -> dict[str, np.ndarray]:
    """Every type of column with gaps, except for `wet`; `price` is skewed, `size` Gaussian."""
    random = np.random.default_rng(seed)
    gap = random.random(rows) < 0.1
    days = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(7, "h")
    return {
        "size": np.where(gap, np.nan, random.normal(size=rows)),
        "wet": (random.random(rows) < 0.3).astype(float),
        "city": random.choice(np.array(["Oslo", "Rome", "Bern", None], object), rows),
        "day": np.where(gap, np.datetime64("NaT"), days),
        "price": np.exp(2 * random.normal(size=rows)),
    }


def fit(columns: dict[str, np.ndarray], **types: str) -> FeatureEncoder:
    types = types or TYPES
    features = [FeatureConfig(name=n, type=t) for n, t in types.items()]  # type: ignore[arg-type]
    return FeatureEncoder.fit(features, types, columns, pieces=True)


def inputs(encoder: FeatureEncoder, columns: dict[str, np.ndarray]) -> torch.Tensor:
    return encoder.expand(encoder.encode(columns))


def objects(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def test_every_input_belongs_to_a_feature() -> None:
    """The Gaussian column has no normal score: it would repeat the standardised value.

    Compact columns are the plain ones except for the slots, one code, and three positions.
    """
    encoder = fit(table())
    day = ["value", "score", "flag", *4 * ["wave"]]
    plain = {0: ["value", "flag"], 1: ["value"], 3: day, 4: ["value", "score"]}
    slots = {2: ["Bern", "Oslo", "Rome", "missing", "unknown"]}
    expected = [i for group in (plain, slots) for i, names in group.items() for _ in names]
    assert encoder.plain_columns.tolist() == list(range(17))
    assert encoder.feature_of.tolist() == expected + [i for i in (0, 3, 4) for _ in range(32)]
    assert encoder.compact_width == 12 + 1 + 3
    assert encoder.width == encoder.layout.width == 17 + 96
    assert inputs(encoder, table()).shape == (ROWS, encoder.width)


def test_rare_levels_share_the_slot_of_unknown_ones() -> None:
    values = objects(*["a"] * 5, *["b"] * 3, *["c"] * 2, "d")
    encoder = fit({"k": values}, k="category")
    found = inputs(encoder, {"k": objects("a", "b", "c", "d", "new", None)})
    assert found.argmax(1).tolist() == [0, 1, 2, 2, 2, 2]
    assert (found.sum(1) == 1).all()


@pytest.mark.parametrize(
    ("values", "slots"),
    [
        (["a"] * 9, 0),  # constant
        (["a", "b", "c"], 0),  # all are rare
        (["a", "b", None], 2),  # rare or missing
        (["a"] * 8 + [None], 3),
    ],
)
def test_a_category_is_as_wide_as_it_varies(values: list[str | None], slots: int) -> None:
    assert CategoryEncoder.fit(objects(*values), coded=True).form.width == slots


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(seed=st.integers(0, 20), new=st.lists(NUMBERS, min_size=1, max_size=10))
def test_no_input_is_beyond_the_bound(seed: int, new: list[float]) -> None:
    random = np.random.default_rng(seed)
    training = random.standard_t(1.5, size=200) * 10.0 ** random.integers(-20, 20)
    encoder = fit({"a": training}, a="number")
    found = inputs(encoder, {"a": np.array(new)})
    assert torch.isfinite(found).all()
    assert found.abs().max() <= BOUND


def test_a_rare_level_is_not_new_and_a_missing_one_is_none() -> None:
    """The rare level shares a slot with new ones, so that its slot cannot tell."""
    values = objects(*["Oslo"] * 150, *["Rome"] * 100, "Bern", None)
    encoder = CategoryEncoder.fit(values, coded=True).marking(values)
    assert encoder.marked
    codes = encoder.read(objects("Oslo", "Bern", None, "Paris"))
    assert (codes == encoder.new).tolist() == [False] * 3 + [True]


@pytest.mark.parametrize(("alone", "marked"), [(2, True), (3, False)])
def test_levels_are_marked_only_where_new_ones_are_rare(alone: int, marked: bool) -> None:
    """Good's estimate: 2 of 200 rows with a level to themselves make 1 % of new levels."""
    values = objects(*["Oslo"] * (200 - alone), *(f"city {i}" for i in range(alone)))
    features = [FeatureConfig(name="city", type="category")]
    fitted = FeatureEncoder.fit(features, {"city": "category"}, {"city": values}, rate=0.01)
    (encoder,) = fitted.encoders
    assert isinstance(encoder, CategoryEncoder)
    assert encoder.marked == marked


def test_marks_of_new_levels_are_no_inputs() -> None:
    """Known values have the inputs of an encoder without marks; unknown ones are filled later."""
    columns = {"city": objects(*["Oslo", "Rome", "Bern"] * 100)}
    plain = fit(columns, city="category")
    types = {"city": "category"}
    marking = FeatureEncoder.fit(plain.features, types, columns, pieces=True, rate=0.01)
    rows = {"city": objects("Oslo", "Paris", None)}
    encoded = marking.encode(rows)
    torch.testing.assert_close(marking.expand(encoded)[:1], inputs(plain, rows)[:1])
    assert encoded[:, 0].isnan().tolist() == [False, True, True]
    assert marking.column_score(encoded).tolist() == [0, 1, 1]  # none was missing in training
