"""From columns to a stored model that predicts: the whole path of `models`, on known functions."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    FeatureConfig,
    KLConfig,
    MLPConfig,
    ModelConfig,
    SplitBy,
    TrainingConfig,
)
from models.evaluation.baseline import Baseline
from models.exceptions import CorruptArtifact, InvalidData, InvalidInput, Stopped, UnknownVariant
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.progress import Progress
from models.training.recipe import resolve
from models.training.train import train

QUICK = TrainingConfig(epochs=30, batch_size=64, learning_rate=0.01, fine_tune_epochs=3)


def _profiles(columns: dict[str, np.ndarray], types: dict[str, str]) -> list[ColumnProfile]:
    def profile(name: str, values: np.ndarray) -> ColumnProfile:
        if types[name] == "number":
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            return ColumnProfile(name=name, type="number", min=low, max=high)
        return ColumnProfile(name=name, type=types[name])

    return [profile(name, values) for name, values in columns.items()]


def _train(
    columns: dict[str, np.ndarray], types: dict[str, str] | None = None, **config: object
) -> TabularModel:
    types = types or dict.fromkeys(columns, "number")
    rows = len(next(iter(columns.values())))
    options: dict[str, object] = {"target": "y", "training": QUICK, "pruning": (), **config}
    wanted = ModelConfig(**options)  # type: ignore[arg-type]
    return train(columns, types, resolve(wanted, _profiles(columns, types), rows))


def _line(rows: int = 200, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, rows)
    return {"x": x, "y": 1000 + 300 * x + random.normal(0, 30, rows)}


@pytest.fixture(scope="module")
def line() -> TabularModel:
    training = replace(QUICK, epochs=300)
    return _train(_line(), network=MLPConfig(hidden=(20,)), training=training, pruning=None)


def test_answers_come_in_the_callers_units(line: TabularModel) -> None:
    answer = line.predict({"x": np.array([-0.5, 0.5])}, PredictOptions(samples=500))
    np.testing.assert_allclose(answer.mean, [850, 1150], atol=40)
    np.testing.assert_allclose(np.sqrt(answer.variance["aleatoric"]), 30, atol=12)
    np.testing.assert_allclose(
        answer.variance["total"], answer.variance["aleatoric"] + answer.variance["epistemic"]
    )
    assert [interval.kind for interval in answer.intervals] == ["credible", "conformal"]
    for interval in answer.intervals:
        assert (interval.lower < answer.mean).all()
        assert (interval.upper > answer.mean).all()


def test_epistemic_variance_grows_where_there_were_no_data(line: TabularModel) -> None:
    answer = line.predict({"x": np.array([0.0, 6.0])}, PredictOptions())
    epistemic = answer.variance["epistemic"]
    assert epistemic[1] > 10 * epistemic[0]
    assert answer.out_of_distribution.tolist() == [False, True]
    assert answer.epistemic_share.min() >= 0
    assert answer.epistemic_share.max() <= 1


def test_the_same_question_gets_the_same_answer(line: TabularModel) -> None:
    x = {"x": np.array([0.1, 0.2])}
    first, second = (line.predict(x, PredictOptions(samples=100)) for _ in range(2))
    assert np.array_equal(first.mean, second.mean)
    assert first.seed == line.default_seed
    other = line.predict(x, PredictOptions(samples=100, seed=first.seed + 1))
    assert not np.array_equal(first.intervals[0].lower, other.intervals[0].lower)


def test_one_sample_has_no_epistemic_variance_and_no_known_error(line: TabularModel) -> None:
    answer = line.predict({"x": np.array([0.1])}, PredictOptions(samples=1))
    assert answer.variance["epistemic"].tolist() == [0.0]
    assert answer.mc_error is None


def test_draws_agree_with_the_summaries(line: TabularModel) -> None:
    options = PredictOptions(samples=2000, return_draws=True)
    answer = line.predict({"x": np.array([-0.9, 0.0, 2.0])}, options)
    assert answer.draws is not None
    assert answer.mc_error is not None
    assert answer.draws.shape == (2000, 3)
    error = np.hypot(answer.mc_error, answer.draws.std(0) / np.sqrt(2000))
    assert (np.abs(answer.draws.mean(0) - answer.mean) < 4.5 * error).all()
    np.testing.assert_allclose(answer.draws.var(0), answer.variance["epistemic"], rtol=0.2)


def test_the_stated_monte_carlo_error_is_the_real_one(line: TabularModel) -> None:
    """Over 200 seeds the mean scatters as `mc_error` says, within 20 %."""
    x = {"x": np.array([0.3])}
    answers = [line.predict(x, PredictOptions(samples=30, seed=s)) for s in range(200)]
    actual = np.std([a.mean[0] for a in answers])
    stated = np.mean([a.mc_error[0] for a in answers if a.mc_error is not None])
    assert stated == pytest.approx(actual, rel=0.2)


def test_a_model_on_disk_is_the_same_model(line: TabularModel, tmp_path: Path) -> None:
    written = write_model(line, tmp_path / "model")
    read = read_model(tmp_path / "model")
    for prune in line.variants:
        options = PredictOptions(prune=prune)
        before, after = (m.predict({"x": np.linspace(-2, 2, 9)}, options) for m in (line, read))
        # Compiled loops answer for a model that was read. They round otherwise.
        np.testing.assert_allclose(after.mean, before.mean, rtol=1e-6)
        np.testing.assert_allclose(after.variance["total"], before.variance["total"], rtol=1e-6)
    assert json.loads(json.dumps(written.description)) == json.loads(json.dumps(read.description))
    sizes = [v["bytes"] for v in written.description["variants"]]
    assert sizes == sorted(sizes, reverse=True)


def test_what_was_compared_is_stored(line: TabularModel, tmp_path: Path) -> None:
    candidate = {"name": "KL 1", "settings": {"kl": 1.0}, "score": -1.5, "standard_error": 0.1}
    candidate |= {"difference": 0.0, "difference_error": 0.0, "kept": True}
    selection = {"candidates": [candidate], "metric": "log_likelihood", "rows": 9, "note": "x"}
    metrics = {"crps": 1.0, "coverage": {"0.9": 0.8}}
    baseline = Baseline(kind="constant", metrics=metrics, seconds=0.5, rows=180)
    told = replace(line, selection=selection, baselines=(baseline,), recommended_variant=0.5)
    write_model(told, tmp_path / "model")
    read = read_model(tmp_path / "model")
    assert read.selection == selection
    assert read.baselines == (baseline,)
    assert read.recommended_variant == 0.5
    assert read.description["baselines"] == [asdict(baseline)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"recommended_variant": 0.33}, "/recommended_variant"),
        ({"baselines": (Baseline(kind="constant", metrics={}, seconds=-1.0, rows=1),)}, "/seconds"),
        ({"selection": {"rows": -1}}, "/selection/rows"),
    ],
)
def test_a_wrong_comparison_is_refused(
    line: TabularModel, tmp_path: Path, change: dict[str, Any], place: str
) -> None:
    write_model(replace(line, **change), tmp_path / "model")
    with pytest.raises(CorruptArtifact) as refused:
        read_model(tmp_path / "model")
    assert place in refused.value.path


def test_a_better_pruned_variant_is_recommended() -> None:
    """199 of 200 features are noise, and hardly any KL holds their weights back: pruning does."""
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 200))
    columns = {f"x{i}": x[:, i] for i in range(200)}
    model = _train(
        columns | {"y": x[:, 0] + random.normal(0, 0.1, 100)},
        network=MLPConfig(hidden=(10,)),
        training=replace(
            QUICK, epochs=60, fine_tune_epochs=60, validation_fraction=0.4, calibration_fraction=0
        ),
        method=BBBConfig(kl=KLConfig(weight=0.001)),
        pruning=(0.95,),
    )
    scores = {p: model.variant(p).metrics["log_likelihood"] for p in (0.0, 0.95)}
    assert scores[0.95] > scores[0.0] + 1
    assert model.recommended_variant == 0.95
    (note,) = (note for note in model.notes if "95 % of the weights removed" in note)
    assert f"{scores[0.95]:.4g} instead of {scores[0.0]:.4g}" in note


def test_a_pruned_variant_is_stored_small(tmp_path: Path) -> None:
    """8 bytes a weight in full; at 95 % pruned 0.4 bytes and one bit: about 6.6 %."""
    big = _train(
        _line(),
        network=MLPConfig(hidden=(200, 200)),
        training=replace(QUICK, epochs=1, fine_tune_epochs=0),
        pruning=None,
    )
    described = write_model(big, tmp_path / "model").description["variants"]
    assert [v["prune"] for v in described] == [0.0, 0.5, 0.75, 0.9, 0.95]
    assert described[-1]["num_weights"] == pytest.approx(
        0.05 * described[0]["num_weights"], rel=0.01
    )
    assert described[-1]["bytes"] < 0.07 * described[0]["bytes"]


@pytest.mark.parametrize("name", ["model.json", "prune-0.safetensors"])
def test_a_changed_or_missing_file_is_noticed(
    line: TabularModel, tmp_path: Path, name: str
) -> None:
    write_model(line, tmp_path / "model")
    path = tmp_path / "model" / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptArtifact, match=name):
        read_model(tmp_path / "model")
    path.unlink()
    with pytest.raises(CorruptArtifact, match=name):
        read_model(tmp_path / "model")


def test_a_pruned_variant_keeps_its_uncertainty(line: TabularModel) -> None:
    answer = line.predict({"x": np.array([0.2])}, PredictOptions(prune=0.5))
    assert answer.variance["epistemic"][0] > 0
    assert line.variant(0.5).metrics["rmse"] < 100


def test_what_a_model_cannot_do_is_refused(line: TabularModel) -> None:
    x = {"x": np.array([0.2])}
    with pytest.raises(UnknownVariant, match=r"no variant with prune 0\.3; stored are 0, 0\.5"):
        line.predict(x, PredictOptions(prune=0.3))
    with pytest.raises(InvalidInput, match="missing features: x"):
        line.predict({}, PredictOptions())


def test_classes_in_the_callers_words() -> None:
    random = np.random.default_rng(0)
    x = random.normal(0, 1, (300, 2))
    label = np.where(x[:, 0] + x[:, 1] > 0, "above", "below").astype(object)
    columns = {"a": x[:, 0], "b": x[:, 1], "y": label}
    types = {"a": "number", "b": "number", "y": "category"}
    model = _train(columns, types, training=replace(QUICK, epochs=60))
    answer = model.predict(
        {"a": np.array([2.0, -2.0]), "b": np.array([2.0, -2.0])}, PredictOptions()
    )
    assert answer.labels == ["above", "below"]
    assert answer.classes == ("above", "below")
    np.testing.assert_allclose(answer.mean.sum(1), 1)
    assert answer.entropy is not None
    np.testing.assert_allclose(
        answer.entropy["total"], answer.entropy["aleatoric"] + answer.entropy["epistemic"]
    )
    assert model.variant(0.0).metrics["accuracy"] > 0.85


def test_mixed_columns_with_gaps_constants_and_copies() -> None:
    random = np.random.default_rng(1)
    x = random.normal(0, 1, 300)
    kind = random.choice(np.array(["p", "q", "r"], dtype=object), 300)
    y = 2 * x + (kind == "q") + random.normal(0, 0.1, 300)
    gaps = x.copy()
    gaps[::7] = np.nan
    y[5] = np.nan
    columns = {
        "x": x,
        "copy": x,
        "gaps": gaps,
        "constant": np.ones(300),
        "kind": kind,
        "flag": (random.random(300) > 0.5).astype(float),
        "when": np.datetime64("2024-01-01", "us") + np.arange(300) * np.timedelta64(1, "h"),
        "image": random.random((300, 2, 2)),
        "y": y,
    }
    kinds = {"kind": "category", "flag": "boolean", "when": "datetime", "image": "tensor"}
    types = dict.fromkeys(columns, "number") | kinds
    model = _train(columns, types)
    assert "1 row without a target was left out" in model.notes
    assert any("constant" in note for note in model.notes)
    strange = {name: values[:3].copy() for name, values in columns.items() if name != "y"}
    strange["kind"][:] = "never seen"
    strange["gaps"][:] = np.nan
    strange["x"][:] = np.nan
    strange["when"][:] = np.datetime64("NaT")
    answer = model.predict(strange, PredictOptions())
    assert np.isfinite(answer.mean).all()
    assert np.isfinite(answer.variance["total"]).all()


def test_a_number_read_as_a_category() -> None:
    columns = {**_line(), "code": np.tile([1.0, 2.0], 100)}
    features = (
        FeatureConfig(name="x", type="number"),
        FeatureConfig(name="code", type="category"),
    )
    model = _train(columns, features=features)
    assert model.encoder.width == 1 + 3
    answer = model.predict(
        {"x": np.zeros(3), "code": np.array([1.0, 9.0, np.nan])}, PredictOptions()
    )
    assert [column.type for column in model.inputs] == ["number", "number"]
    assert np.isfinite(answer.mean).all()


def test_groups_and_weights_are_used() -> None:
    columns = {**_line(), "g": np.repeat(np.arange(20.0), 10), "w": np.ones(200)}
    training = replace(QUICK, split=SplitBy(by="g"))
    features = (FeatureConfig(name="x", type="number"),)
    model = _train(columns, training=training, weight="w", features=features)
    assert model.variant(0.0).metrics["rows"] == 20


def test_targets_that_cannot_be_learned_are_refused() -> None:
    columns = _line(40)
    columns["y"][:] = np.nan
    columns["y"][:3] = [1.0, 2.0, 3.0]
    with pytest.raises(InvalidData, match="3 rows have a target"):
        _train(columns)


def test_progress_rises_to_one_and_reports_nats() -> None:
    seen: list[Progress] = []
    config = resolve(
        ModelConfig(target="y", training=QUICK, pruning=(0.5,)),
        _profiles(_line(), dict.fromkeys(_line(), "number")),
        200,
    )
    train(_line(), dict.fromkeys(_line(), "number"), config, on_progress=seen.append)
    fractions = [p.fraction for p in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)
    assert {p.stage for p in seen} == {"fit", "prune-0.5"}
    assert set(seen[-1].metrics) == {"nelbo", "nll", "kl", "held_out_log_likelihood"}


@pytest.mark.parametrize(("stop_at", "refit"), [(20, False), (34, False), (35, True)])
def test_a_stopped_and_resumed_training_gives_the_same_model(
    tmp_path: Path, stop_at: int, refit: bool
) -> None:
    """Stopped in the fit (30 mini-batches), in the first variant's fine-tuning (9), and in the
    second fit, which ends after the best epoch of the first.
    """
    training = replace(QUICK, refit=refit, stopping_fraction=0.1 if refit else 0.0)
    columns, types = _line(), {"x": "number", "y": "number"}
    training = replace(QUICK, epochs=10, refit=refit, stopping_fraction=0.1 if refit else None)
    config = resolve(
        ModelConfig(target="y", training=training, pruning=(0.5, 0.9)),
        _profiles(columns, types),
        200,
    )
    whole = train(columns, types, config)
    asked = iter(range(10_000))
    with pytest.raises(Stopped):
        train(
            columns,
            types,
            config,
            should_stop=lambda: next(asked) == stop_at,
            checkpoint_dir=tmp_path,
        )
    resumed = train(columns, types, config, checkpoint_dir=tmp_path)
    for prune in whole.variants:
        q, p = (m.variant(prune).state.posterior.distribution() for m in (whole, resumed))
        for mine, theirs in zip(q.moments(), p.moments(), strict=True):
            assert torch.equal(mine, theirs)
    assert whole.history == resumed.history
    assert [v.calibration for v in whole.variants_by_prune.values()] == [
        v.calibration for v in resumed.variants_by_prune.values()
    ]


def test_a_run_that_was_cut_off_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    """Killed at a mini-batch, without a word: what was saved as it ran is whole."""
    columns, types = _line(), {"x": "number", "y": "number"}
    wanted = ModelConfig(target="y", training=QUICK, pruning=())
    config = resolve(wanted, _profiles(columns, types), 200)
    asked, steps, total = (iter(range(10_000)) for _ in range(3))
    whole = train(columns, types, config, should_stop=lambda: next(total) < 0)

    def killed() -> bool:
        if next(asked) == 40:
            raise SystemExit
        return False

    with pytest.raises(SystemExit):
        train(
            columns,
            types,
            config,
            should_stop=killed,
            checkpoint_dir=tmp_path,
            checkpoint_seconds=0.0,
        )
    resumed = train(
        columns, types, config, should_stop=lambda: next(steps) < 0, checkpoint_dir=tmp_path
    )
    assert next(steps) == next(total) - 40
    assert whole.history == resumed.history
    loc = [model.variant(0.0).state.posterior.loc for model in (whole, resumed)]
    assert torch.equal(*loc)


@pytest.mark.parametrize("older", [{"format": 0}, {}], ids=["another format", "none"])
def test_a_checkpoint_of_another_release_is_not_gone_on_from(
    tmp_path: Path, older: dict[str, int]
) -> None:
    """Its weights, finite as they are, were fitted to other inputs."""
    columns, types = _line(), {"x": "number", "y": "number"}
    wanted = ModelConfig(target="y", training=replace(QUICK, epochs=2), pruning=())
    config = resolve(wanted, _profiles(columns, types), 200)
    whole = train(columns, types, config, checkpoint_dir=tmp_path)
    path = tmp_path / "fit.safetensors"
    tensors = load_file(path)
    told = json.loads(tensors.pop("counters").numpy().tobytes())
    foreign = {name: values + 1 for name, values in tensors.items()}
    content = json.dumps(older | {"counters": told["counters"]}).encode()
    foreign["counters"] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    save_file(foreign, path)
    anew = train(columns, types, config, checkpoint_dir=tmp_path)
    loc = [model.variant(0.0).state.posterior.loc for model in (whole, anew)]
    assert torch.equal(*loc)


def test_one_noise_for_all_rows_is_learned_and_stored(tmp_path: Path) -> None:
    """The line's noise has a deviation of 30, within 20 %."""
    training = replace(QUICK, epochs=150, learning_rate=0.05)
    network = MLPConfig(hidden=(8,))
    model = _train(_line(), likelihood="homoscedastic", network=network, training=training)
    write_model(model, tmp_path / "model")
    for one in (model, read_model(tmp_path / "model")):
        answer = one.predict({"x": np.array([-0.5, 0.5])}, PredictOptions())
        aleatoric = answer.variance["aleatoric"]
        assert aleatoric[0] == pytest.approx(aleatoric[1])
        assert np.sqrt(aleatoric[0]) == pytest.approx(30, rel=0.2)


def test_a_boolean_target_takes_one_logit_and_answers_in_booleans() -> None:
    random = np.random.default_rng(0)
    x = random.normal(0, 1, 300)
    columns = {"x": x, "y": (x > 0).astype(float)}
    model = _train(columns, {"x": "number", "y": "boolean"})
    assert model.config.likelihood == "bernoulli"
    answer = model.predict({"x": np.array([-2.0, 2.0])}, PredictOptions())
    assert answer.labels == [False, True]
    assert answer.mean.shape == (2, 2)
