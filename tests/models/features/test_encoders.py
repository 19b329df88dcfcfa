"""The inputs of tables: widths, bounds, missing and unknown values, and whose input each is."""

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from models.config import FeatureConfig
from models.features.categories import CategoryEncoder
from models.features.encoders import Encoder
from models.features.feature_encoder import FeatureEncoder
from models.features.numbers import BOUND, NumberEncoder
from models.features.sizes import Sizes

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


def _number(encoder: FeatureEncoder, at: int) -> NumberEncoder:
    found = encoder.encoders[at]
    assert isinstance(found, NumberEncoder)
    return found


def test_plain_inputs_are_the_first_ones() -> None:
    encoder = fit(table())
    compact = encoder.encode(table())
    torch.testing.assert_close(encoder.plain(compact), inputs(encoder, table())[:, :17])


def test_inputs_of_a_missing_number_are_zero_and_flagged() -> None:
    random = np.random.default_rng(0)
    values = np.where(np.arange(ROWS) % 5 == 0, np.nan, random.gamma(0.3, size=ROWS))
    encoder = fit({"a": values}, a="number")
    [found] = inputs(encoder, {"a": np.array([np.nan])})
    flag = 2 if _number(encoder, 0).scores is not None else 1
    assert found[flag] == 1
    assert (found != 0).sum() == 1


def test_a_number_that_never_missed_is_taken_as_the_mean() -> None:
    encoder = fit({"a": np.random.default_rng(0).normal(size=ROWS)}, a="number")
    assert not encoder.inputs[0].missing
    assert (inputs(encoder, {"a": np.array([np.nan])}) == 0).all()


def test_a_column_that_repeats_its_normal_score_has_one_input_less() -> None:
    random = np.random.default_rng(0)
    normal, bimodal = random.normal(size=500), random.choice([-3.0, 3.0], 500)
    bimodal += 0.1 * random.normal(size=500)
    encoder = fit({"a": normal, "b": bimodal}, a="number", b="number")
    assert [_number(encoder, i).scores is None for i in range(2)] == [True, False]


def test_two_values_need_no_pieces() -> None:
    encoder = fit({"a": np.repeat([0.0, 1.0], [390, 10])}, a="boolean")
    assert encoder.width == 1


def test_rare_levels_share_the_slot_of_unknown_ones() -> None:
    values = objects(*["a"] * 5, *["b"] * 3, *["c"] * 2, "d")
    encoder = fit({"k": values}, k="category")
    found = inputs(encoder, {"k": objects("a", "b", "c", "d", "new", None)})
    assert found.argmax(1).tolist() == [0, 1, 2, 2, 2, 2]
    assert (found.sum(1) == 1).all()


def test_a_missing_level_has_a_slot_where_training_had_it() -> None:
    encoder = fit({"k": objects(*["a"] * 5, *["b"] * 5, None)}, k="category")
    found = inputs(encoder, {"k": objects("b", None, "new")})
    assert found.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("values", "slots"),
    [
        (["a"] * 9, 0),  # constant
        ([None] * 9, 0),
        (["a", "b", "c"], 0),  # all are rare
        (["a", "b", None], 2),  # rare or missing
        (["a"] * 8 + ["b"], 2),
        (["a"] * 8 + [None], 3),
    ],
)
def test_a_category_is_as_wide_as_it_varies(values: list[str | None], slots: int) -> None:
    assert CategoryEncoder.fit(objects(*values), coded=True).form.width == slots


def test_encoders_survive_json() -> None:
    encoder = fit(table())
    stored = json.loads(json.dumps([asdict(one) for one in encoder.encoders]))
    again = replace(encoder, encoders=TypeAdapter(tuple[Encoder, ...]).validate_python(stored))
    assert again == encoder
    torch.testing.assert_close(inputs(again, table()), inputs(encoder, table()), rtol=0, atol=0)


def test_documents_without_the_new_fields_encode_as_before() -> None:
    """The encoders that release 0001 wrote, with their values of then."""
    old: list[dict[str, Any]] = [
        {"kind": "number", "mean": 2.0, "std": 4.0, "indicator": True, "power": None},
        {"kind": "category", "levels": ["a", "b"]},
    ]
    features = FeatureConfig(name="x", type="number"), FeatureConfig(name="k", type="category")
    encoders = TypeAdapter(tuple[Encoder, ...]).validate_python(old)
    encoder = FeatureEncoder(features, ("number", "category"), encoders)
    columns = {"x": np.array([402.0, np.nan]), "k": objects("b", None)}
    assert inputs(encoder, columns).tolist() == [[100, 0, 0, 1, 0], [0, 1, 0, 0, 1]]


def test_equal_tables_have_equal_encoders() -> None:
    assert fit(table()) == fit(table())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(1, (32, 256, 256)), (10, (32, 256, 204)), (64, (16, 128, 32)), (300, (3, 27, 8))],
)
def test_many_columns_share_the_totals(columns: int, expected: tuple[int, int, int]) -> None:
    sizes = Sizes.shared_by(numbers=columns, categories=columns)
    assert (sizes.pieces, sizes.knots, sizes.levels) == expected


def test_levels_of_many_categories_share_their_slots() -> None:
    random = np.random.default_rng(0)
    columns = {f"k{i}": random.integers(0, 60, 600).astype(str).astype(object) for i in range(64)}
    encoder = fit(columns, **dict.fromkeys(columns, "category"))
    assert encoder.width == 64 * (32 + 1)


def test_the_width_of_many_columns_is_bounded() -> None:
    random = np.random.default_rng(0)
    columns = {f"x{i}": random.normal(size=50) for i in range(300)}
    encoder = fit(columns, **dict.fromkeys(columns, "number"))
    assert encoder.width - len(encoder.plain_columns) == 900
    assert encoder.width <= 300 * 2 + 1_024


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@settings(deadline=None)
@given(seed=st.integers(0, 20), new=st.lists(NUMBERS, min_size=1, max_size=10))
def test_no_input_is_beyond_the_bound(seed: int, new: list[float]) -> None:
    random = np.random.default_rng(seed)
    training = random.standard_t(1.5, size=200) * 10.0 ** random.integers(-20, 20)
    encoder = fit({"a": training}, a="number")
    found = inputs(encoder, {"a": np.array(new)})
    assert torch.isfinite(found).all()
    assert found.abs().max() <= BOUND


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=10))
def test_any_level_has_one_slot(new: list[str | None]) -> None:
    encoder = fit({"k": objects(*"aaabbbcccdd", None)}, k="category")
    found = inputs(encoder, {"k": np.array([*new, None], dtype=object)[:-1]})
    assert (found.sum(1) == 1).all()
