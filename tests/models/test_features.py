"""Columns become tensors, and what was taken out is refused."""

import difflib
import json
import random
import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from scipy.stats import yeojohnson, yeojohnson_llf

from models.config import (
    FeatureConfig,
    LaplaceConfig,
    MLPConfig,
    ModelConfig,
    PartConfig,
    StoredConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnProfile
from models.features.encoders import NumberEncoder, fit_encoder
from models.features.encodings import encode
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import batches
from models.features.scales import PowerTransform, inverse_yeo_johnson, powers_of, yeo_johnson
from models.features.splits import divide_rows
from models.features.targets import ClassTarget, NumberTarget, Target
from models.messages import nearest_name
from models.training.recipe import resolve


def feature(name: str, kind: str) -> FeatureConfig:
    return FeatureConfig(name=name, type=kind)  # type: ignore[arg-type]


def fit(kind: str, values: np.ndarray) -> FeatureEncoder:
    return FeatureEncoder.fit([feature("a", kind)], {"a": kind}, {"a": values})


def objects(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def test_numbers_are_standardised_by_the_training_rows() -> None:
    encoder = fit("number", np.array([1.0, 3.0, 5.0, 7.0]))
    got = encoder.encode({"a": np.array([4.0, 4.0 + np.sqrt(5.0)])})
    torch.testing.assert_close(got, torch.tensor([[0.0], [1.0]]))


def test_a_missing_number_is_the_mean_and_flagged_where_training_had_gaps() -> None:
    gappy = fit("number", np.array([1.0, np.nan, 5.0]))
    torch.testing.assert_close(
        gappy.encode({"a": np.array([np.nan, 3.0])}), torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    )
    whole = fit("number", np.array([1.0, 5.0]))
    torch.testing.assert_close(whole.encode({"a": np.array([np.nan])}), torch.zeros(1, 1))


def test_a_datetime_gets_the_cycles_that_training_covers() -> None:
    hours = np.arange("2024-01-01T00", "2024-01-20T00", dtype="datetime64[h]")
    encoder = fit("datetime", hours.astype("datetime64[us]"))
    assert encoder.width == 1 + 2 * 2  # hour of day and day of week, but no year
    one, week_later = encoder.encode({"a": hours[[5, 5 + 24 * 7]].astype("datetime64[us]")})
    torch.testing.assert_close(one[1:], week_later[1:], atol=1e-4, rtol=0)
    assert week_later[0] > one[0]
    gap = encoder.encode({"a": np.array(["NaT"], dtype="datetime64[us]")})
    assert torch.isfinite(gap).all()


def test_images_are_flattened_with_one_scale() -> None:
    images = np.random.default_rng(0).integers(0, 256, (50, 4, 3)).astype(np.uint8)
    images[:, 0, 0] = 0  # a pixel that never varies must not be blown up
    got = fit("tensor", images).encode({"a": images})
    assert got.shape == (50, 12)
    assert got.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert got.std(correction=0).item() == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(InvalidInput, match="shape"):
        fit("tensor", images).encode({"a": images[:, :2]})


def test_constant_columns_are_left_out_and_named() -> None:
    features = [feature("x", "number"), feature("c", "number"), feature("k", "category")]
    columns = {"x": np.arange(4.0), "c": np.full(4, 0.1), "k": objects(*"zzzz")}
    types = {f.name: f.type for f in features}
    encoder = FeatureEncoder.fit(features, types, columns)
    assert encoder.constant_columns() == ["c", "k"]
    assert encoder.encode(columns).shape == (4, 1)
    with pytest.raises(InvalidData, match=r"\(a\)"):
        fit("number", np.ones(5))  # nothing else


def test_targets_keep_the_callers_types() -> None:
    numbers = ClassTarget.fit(np.array([2.0, 0.0, 2.0]), boolean=False)
    assert numbers.classes == (0, 2)
    assert numbers.encode(np.array([2.0, 0.0])).tolist() == [1, 0]
    assert ClassTarget.fit(np.array([1.0, 0.0]), boolean=True).classes == (False, True)
    assert ClassTarget.fit(objects("no", "yes"), boolean=False).classes == ("no", "yes")
    with pytest.raises(InvalidInput, match="unknown classes"):
        numbers.encode(np.array([7.0]))
    for target in (numbers, NumberTarget(1.0, 2.0)):
        stored = json.loads(json.dumps(asdict(target)))
        assert TypeAdapter(Target).validate_python(stored) == target


def test_targets_that_teach_nothing_are_refused() -> None:
    with pytest.raises(InvalidData):
        NumberTarget.fit(np.full(9, 3.0))
    with pytest.raises(InvalidData):
        ClassTarget.fit(objects("a", "a"), boolean=False)


def test_a_random_split_is_reproducible_and_disjoint() -> None:
    config = TrainingConfig(validation_fraction=0.2, seed=5)
    division = divide_rows(config, 50, None)
    assert len(division.scores) == 10
    assert sorted([*division.training, *division.scores]) == list(range(50))
    assert (divide_rows(config, 50, None).scores == division.scores).all()
    assert (divide_rows(replace(config, seed=6), 50, None).scores != division.scores).any()


@pytest.mark.parametrize(("rows", "batch"), [(257, 256), (256, 256), (7, 3), (3, 8)])
def test_an_epoch_visits_every_row_once_in_nearly_equal_batches(rows: int, batch: int) -> None:
    """A leftover row would otherwise take a whole step: 257 rows are 129 and 128, not 256 and 1."""
    parts = list(batches(rows, batch, seed=0, epoch=0))
    assert sorted(torch.cat(parts).tolist()) == list(range(rows))
    sizes = [len(part) for part in parts]
    assert len(sizes) == -(-rows // batch)
    assert max(sizes) - min(sizes) <= 1


NUMBER = FeatureConfig(name="x", type="number")
PRICES = np.exp(np.random.default_rng(0).normal(3.0, 1.2, 500))


def test_the_transform_is_that_of_the_literature_with_the_likeliest_exponent() -> None:
    z = np.linspace(-5, 5, 101)
    for exponent in (0.0, 0.3, 1.0, 1.7, 2.0):
        powers = powers_of(torch.tensor(exponent, dtype=torch.float64))
        found = yeo_johnson(torch.from_numpy(z), powers)
        np.testing.assert_allclose(found, yeojohnson(z, exponent), rtol=1e-12)
        np.testing.assert_allclose(inverse_yeo_johnson(found, powers), z, rtol=1e-12, atol=1e-12)
    transform = PowerTransform.fit(np.sqrt(PRICES))
    z = (np.sqrt(PRICES) - transform.centre) / transform.scale
    grid = np.linspace(0, 2, 2001)  # those allowed
    best = grid[np.argmax([yeojohnson_llf(exponent, z) for exponent in grid])]
    assert transform.exponent == pytest.approx(best, abs=1e-3)


def test_what_is_far_outside_stays_far_outside() -> None:
    """A bounded transform would hide it from the out-of-distribution score."""
    encoder = fit_encoder(NUMBER, PRICES)
    assert isinstance(encoder, NumberEncoder)
    values = np.array([PRICES.max(), 1e6 * PRICES.max()])
    most, million_times = encode(encoder.standard, values)
    assert million_times > most + 5


def test_other_columns_stay_as_they_are() -> None:
    symmetric = np.random.default_rng(0).normal(size=500)
    for values in (symmetric, np.repeat([0.0, 1.0], [490, 10])):
        expected = NumberEncoder(values.mean(), values.std(), indicator=False)
        assert fit_encoder(NUMBER, values) == expected


def test_the_nearest_of_misspelt_names_is_that_of_the_standard_library() -> None:
    known = ["Living area", "price", "year_built", "Price per m²", "postal code", "district"]
    for name in ("prise", "living  area", "yearbuilt", "POSTAL_CODE", "distrct", "zzz"):
        (*near,) = difflib.get_close_matches(name.casefold(), map(str.casefold, known), n=1)
        found = nearest_name(name, known)
        assert (found and found.casefold()) == (near[0] if near else None)


@pytest.mark.timing
def test_names_that_are_made_to_be_alike_take_no_time() -> None:
    """20,000 of 190 letters, of which there are two, in processor time of this thread."""
    chosen = random.Random(0)
    known = ["".join(chosen.choices("ab", k=190)) for _ in range(20_000)]
    started = time.thread_time()
    assert nearest_name(f"{known[7]}c", known) == known[7]
    assert time.thread_time() - started < 5


GONE: list[dict[str, Any]] = [
    {"method": {"kind": "bbb", "sharpening": True}},
    {"training": {"schedule": "plateau"}},
]


PATH = {"network": {"parts": [{"hidden": [8], "skip": True}]}}


@pytest.mark.parametrize("settings", [*GONE, PATH])
def test_a_request_is_told_what_to_use_instead(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"taken out after release 0\.1: (leave|take)"):
        TypeAdapter(ModelConfig).validate_python({"target": "text"} | settings)


@pytest.mark.parametrize("settings", [*GONE, {"method": {"kind": "bbb", "sharpening": False}}])
def test_a_stored_configuration_is_read_without_it(settings: dict[str, Any]) -> None:
    read = TypeAdapter(StoredConfig).validate_python({"target": "text"} | settings)
    assert read == ModelConfig(target="text")


def test_a_stored_part_is_read_without_its_path_unless_it_has_one() -> None:
    stored = TypeAdapter(StoredConfig)
    part = {"hidden": [8], "skip": False, "sharing": "none", "networks": 1}
    read = stored.validate_python({"target": "y", "network": {"parts": [part]}})
    parts = (PartConfig(hidden=(8,)),)
    assert read == ModelConfig(target="y", network=MLPConfig(parts=parts))
    with pytest.raises(ValidationError, match=r"taken out after release 0\.1: leave skip out"):
        stored.validate_python({"target": "y"} | PATH)


def test_the_full_curvature_is_of_the_last_layer_alone() -> None:
    config = ModelConfig(
        target="y",
        network=MLPConfig(hidden=(4,)),
        method=LaplaceConfig(kind="laplace", over="all", hessian="full"),
    )
    columns = [ColumnProfile(name=name, type="number") for name in ("x", "y")]
    with pytest.raises(InvalidData, match=r"0\.1: take hessian 'kron' or 'diagonal'"):
        resolve(config, columns, 100)
