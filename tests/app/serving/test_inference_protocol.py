"""The Open Inference Protocol v2: Triton's own client against a process, and its traps by hand."""

import gzip
import json
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tritonclient import http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from tests.app.serving.test_predict import ROWS, TREES
from tests.app.test_bodies import problem
from tests.credence.running import serving

LENGTH = "Inference-Header-Content-Length"
DAY = "2026-01-05T00:00:00Z"
INPUTS: dict[str, np.ndarray] = {
    "size": np.array([1.5, np.nan, -1.0]),
    "wood": np.array(["oak", "ash", "never seen"], dtype=object),
    "wet": np.array([True, False, False]),
    "day": np.array([DAY, "2026-01-05", "2026-01-05T01:30:00+01:30"], dtype=object),
}
SAME = [
    {"size": 1.5, "wood": "oak", "wet": True, "day": DAY},
    {"size": None, "wood": "ash", "wet": False, "day": DAY},
    {"size": -1, "wood": "never seen", "wet": False, "day": DAY},
]
PLANE = np.array([[0.1, 0.2], [0.3, 0.4]])
IMAGES = np.array([[[0.1, 0.0], [0.0, 0.2]], [[0.3, 0.0], [0.0, 0.4]]], np.float32)


@pytest.fixture(scope="module")
def url(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A process of its own, as clients meet it."""
    directory = tmp_path_factory.mktemp("protocol")
    shutil.copytree(trained, directory / "data")
    with serving(directory, "api") as running:
        yield running.url


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture
def client(url: str) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(url.removeprefix("http://")) as client:
        yield client


def tensors(arrays: dict[str, np.ndarray], *, binary: bool = True) -> list[triton.InferInput]:
    result = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        result.append(tensor.set_data_from_numpy(array, binary_data=binary))
    return result


def predicted(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = http.post("/predict", json={"model": "price", "inputs": SAME} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def tensor(name: str, array: np.ndarray | Sequence[Any], datatype: str = "FP64") -> dict[str, Any]:
    return {
        "name": name,
        "shape": list(np.shape(array)),
        "datatype": datatype,
        "data": array.tolist() if isinstance(array, np.ndarray) else array,
    }


def price_tensors(rows: int = 3) -> dict[str, dict[str, Any]]:
    """The inputs of `price` in JSON, without a missing value."""
    datatypes = {"wood": "BYTES", "wet": "BOOL", "day": "BYTES", "size": "FP64"}
    return {
        name: tensor(name, np.nan_to_num(a[:rows]) if name == "size" else a[:rows], datatypes[name])
        for name, a in INPUTS.items()
    }


def infer(http: httpx.Client, inputs: Sequence[Any], model: str = "price", **body: Any) -> Any:
    return http.post(f"/v2/models/{model}/infer", json={"inputs": list(inputs), **body})


def refused(answer: httpx.Response, status: int, *words: str) -> str:
    """The `error` of a problem, which Triton's client shows; it has all of the words in it."""
    document = problem(answer, status)
    assert document["error"] == document["detail"]
    assert all(word in document["error"] for word in words), document["error"]
    return str(document["error"])


# ---- Triton's client, as it is


def test_server_and_models_tell_of_themselves(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.get_server_metadata()["name"] == "credence"
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    for version in ("", "1", "2", "champion"):
        assert client.is_model_ready("price", version)
    assert not client.is_model_ready("price", "3")
    assert not client.is_model_ready("none")


def test_metadata_name_the_tensors(client: triton.InferenceServerClient) -> None:
    price = client.get_model_metadata("price", "champion")
    assert sorted(price["versions"]) == ["1", "2"]
    assert price["inputs"] == [
        {"name": "size", "datatype": "FP64", "shape": [-1]},
        {"name": "wood", "datatype": "BYTES", "shape": [-1]},
        {"name": "wet", "datatype": "BOOL", "shape": [-1]},
        {"name": "day", "datatype": "BYTES", "shape": [-1]},
    ]
    tree = client.get_model_metadata("tree")
    assert tree["inputs"][2] == {"name": "image", "datatype": "FP32", "shape": [-1, 2, 2]}
    outputs = {output["name"]: output for output in tree["outputs"]}
    assert outputs["probabilities"]["shape"] == [-1, 3]
    assert outputs["samples"]["shape"] == [-1, -1, 3]
    assert outputs["labels"]["datatype"] == "BYTES"


@pytest.mark.parametrize("binary", [True, False])
def test_numbers_are_those_of_predict(
    client: triton.InferenceServerClient, http: httpx.Client, binary: bool
) -> None:
    expected = predicted(http, inputs=[SAME[0], SAME[2]], samples=30, seed=7, prune=0.5, version=1)
    inputs = tensors({name: a[[0, 2]] for name, a in INPUTS.items()}, binary=binary)
    names = ["mean", "aleatoric_variance", "epistemic_variance", "total_variance", "mc_error"]
    wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name in names]
    result = client.infer(
        "price",
        inputs,
        "champion",
        outputs=wanted,
        request_id="order 66",
        parameters={"samples": 30, "seed": 7, "prune": 0.5, "sampler": expected["sampler"]},
    )
    response = result.get_response()
    assert (response["model_name"], response["model_version"]) == ("price", "1")
    assert response["id"] == "order 66"
    assert response["parameters"] == {
        "samples": 30, "seed": 7, "sampler": expected["sampler"], "prune": 0.5,
    }  # fmt: skip
    assert [output["name"] for output in response["outputs"]] == names
    assert result.as_numpy("mean").tolist() == expected["mean"]
    assert result.as_numpy("total_variance").tolist() == expected["variance"]["total"]
    assert result.as_numpy("mc_error").tolist() == expected["mc_error"]


def test_nan_is_a_missing_value_where_training_knew_some(
    client: triton.InferenceServerClient, http: httpx.Client
) -> None:
    result = client.infer("price", tensors(INPUTS))
    assert result.as_numpy("mean").tolist() == predicted(http)["mean"]
    listed = price_tensors() | {"size": tensor("size", [1.5, None, -1.0])}
    assert infer(http, listed.values()).json()["outputs"][0]["data"] == predicted(http)["mean"]
    with pytest.raises(InferenceServerException, match="'x', which no training row lacks"):
        client.infer("tree", tensors({"inputs": PLANE * np.nan, "image": IMAGES}))


def test_draws_and_quantiles_come_when_they_are_asked_for(
    client: triton.InferenceServerClient, http: httpx.Client
) -> None:
    expected = predicted(http, samples=8, return_draws=True, intervals=[0.5, 0.9])
    names = ("samples", "quantiles", "conformal_quantiles")
    wanted = [triton.InferRequestedOutput(name) for name in names]
    options = {"samples": 8, "intervals": "0.5,0.9"}
    result = client.infer("price", tensors(INPUTS), outputs=wanted, parameters=options)
    assert result.as_numpy("samples").tolist() == expected["draws"]
    for name, kind in (("quantiles", "credible"), ("conformal_quantiles", "conformal")):
        quantiles = result.as_numpy(name)
        assert quantiles.shape == (3, 2, 2)
        intervals = [one for one in expected["intervals"] if one["kind"] == kind]
        for i, interval in enumerate(intervals):
            assert quantiles[:, i, 0].tolist() == interval["lower"]
            assert quantiles[:, i, 1].tolist() == interval["upper"]
    default = client.infer("price", tensors(INPUTS), parameters={"intervals": 0.5})
    assert default.as_numpy("quantiles").shape == (3, 1, 2)
    assert client.infer("price", tensors(INPUTS)).as_numpy("quantiles") is None


def test_classes_come_with_names_and_entropies(
    client: triton.InferenceServerClient, http: httpx.Client
) -> None:
    rows = [
        {"x": x, "y": y, "image": image.astype(float).tolist()}
        for (x, y), image in zip(PLANE.tolist(), IMAGES, strict=True)
    ]
    expected = predicted(http, model="tree", inputs=rows, samples=8)
    matrix = tensors({"inputs": PLANE, "image": IMAGES})
    result = client.infer("tree", matrix, parameters={"samples": 8})
    assert result.as_numpy("probabilities").tolist() == expected["probabilities"]
    assert result.as_numpy("predictive_entropy").tolist() == expected["entropy"]["total"]
    assert result.as_numpy("expected_entropy").tolist() == expected["entropy"]["aleatoric"]
    assert result.as_numpy("mutual_information").tolist() == expected["entropy"]["epistemic"]
    names = ["labels", "out_of_distribution", "samples"]
    for binary in (True, False):
        wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name in names]
        result = client.infer("tree", matrix, outputs=wanted, parameters={"samples": 8})
        labels = [v.decode() if binary else v for v in result.as_numpy("labels").tolist()]
        assert labels == expected["labels"]
        assert result.as_numpy("out_of_distribution").dtype == bool
        assert result.as_numpy("samples").shape == (8, 2, 3)


def test_sets_are_flags_of_the_classes(
    client: triton.InferenceServerClient, http: httpx.Client
) -> None:
    rows = [
        {"x": x, "y": y, "image": image.astype(float).tolist()}
        for (x, y), image in zip(PLANE.tolist(), IMAGES, strict=True)
    ]
    expected = predicted(http, model="tree", inputs=rows, samples=8, set_level=0.9)
    matrix = tensors({"inputs": PLANE, "image": IMAGES})
    asked = {"samples": 8, "set_level": 0.9}
    both = [triton.InferRequestedOutput(name) for name in ("set", "conformal_set")]
    result = client.infer("tree", matrix, outputs=both, parameters=asked)
    plain = client.infer("tree", matrix, parameters=asked)
    assert plain.as_numpy("set").tolist() == result.as_numpy("set").tolist()
    assert plain.as_numpy("conformal_set") is None  # as the bounds of conformal intervals
    for name, one in zip(("set", "conformal_set"), expected["sets"], strict=True):
        members = result.as_numpy(name)
        assert members.dtype == bool
        named = [{str(expected["classes"][k]) for k in np.flatnonzero(row)} for row in members]
        assert named == [set(row) for row in one["classes"]]
    with pytest.raises(InferenceServerException, match="'set' needs it: give it"):
        client.infer("tree", matrix, outputs=both)


def test_one_sample_has_no_error_estimate(client: triton.InferenceServerClient) -> None:
    for binary in (True, False):
        wanted = [triton.InferRequestedOutput("mc_error", binary_data=binary)]
        result = client.infer("price", tensors(INPUTS), outputs=wanted, parameters={"samples": 1})
        assert np.isnan(result.as_numpy("mc_error")).all()


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
)
@pytest.mark.parametrize("binary", [True, False])
def test_numbers_and_tensors_come_in_all_widths(
    client: triton.InferenceServerClient, http: httpx.Client, dtype: str, binary: bool
) -> None:
    rows = [{"x": 1, "y": 2, "image": [[1, 0], [0, 1]]}]
    expected = predicted(http, model="tree", inputs=rows, samples=4)["mean"]
    arrays = {"x": np.array([1]), "y": np.array([[2]]), "image": np.eye(2)[None]}
    inputs = tensors({name: a.astype(dtype) for name, a in arrays.items()}, binary=binary)
    result = client.infer("tree", inputs, parameters={"samples": 4})
    assert result.as_numpy("probabilities") == pytest.approx(np.array(expected))


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests_are_inflated(
    client: triton.InferenceServerClient, http: httpx.Client, algorithm: str
) -> None:
    result = client.infer("price", tensors(INPUTS), request_compression_algorithm=algorithm)
    assert result.as_numpy("mean").tolist() == predicted(http)["mean"]


def test_the_protocols_timeout_is_a_deadline(client: triton.InferenceServerClient) -> None:
    assert client.infer("price", tensors(INPUTS), timeout=30_000_000).as_numpy("mean").size == 3
    with pytest.raises(InferenceServerException, match=r"deadline_ms=0\.001") as caught:
        client.infer("price", tensors(INPUTS), timeout=1)
    assert caught.value.status() == "503"


def test_several_threads_get_their_own_answers(url: str, http: httpx.Client) -> None:
    def ask(seed: int) -> list[float]:
        with triton.InferenceServerClient(url.removeprefix("http://")) as client:
            result = client.infer("price", tensors(INPUTS), parameters={"seed": seed})
            return list(result.as_numpy("mean"))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(12)))
    for seed in (0, 7, 11):
        assert answers[seed] == pytest.approx(predicted(http, seed=seed)["mean"], rel=1e-6)


@pytest.mark.parametrize(
    ("model", "version", "options", "words"),
    [
        ("none", "", {}, "there is no model 'none'"),
        ("price", "9", {}, "price/9"),
        ("price", "gold", {}, "price/gold"),
        ("price", "", {"priority": 1}, "/parameters/priority: unknown field"),
        ("price", "", {"sequence_id": 1}, "/parameters/sequence_id: unknown field"),
        ("price", "", {"timeout": 0}, "/parameters/deadline_ms"),
        ("price", "", {"parameters": {"samples": 0}}, "/parameters/samples"),
        ("price", "", {"parameters": {"samples": 10**6}}, "/parameters/samples"),
        ("price", "", {"parameters": {"prune": 0.3}}, "/parameters/prune"),
        ("price", "", {"parameters": {"return_draws": True}}, "/parameters/return_draws"),
        ("price", "", {"parameters": {"intervals": "0.5,2"}}, "/parameters/intervals/1"),
    ],
)
def test_errors_reach_the_clients_user(
    client: triton.InferenceServerClient,
    model: str,
    version: str,
    options: dict[str, Any],
    words: str,
) -> None:
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, tensors(INPUTS), version, **options)
    assert words in str(caught.value.message())


def test_outputs_that_are_none_are_named(client: triton.InferenceServerClient) -> None:
    for name, words in (("means", "known are mean"), ("probabilities", "this model has only mean")):
        wanted = [triton.InferRequestedOutput(name)]
        with pytest.raises(InferenceServerException, match=words):
            client.infer("price", tensors(INPUTS), outputs=wanted)
    wanted = [triton.InferRequestedOutput("mean", class_count=2)]
    with pytest.raises(InferenceServerException, match="classification"):
        client.infer("price", tensors(INPUTS), outputs=wanted)


# ---- by hand


@pytest.mark.parametrize(
    "path",
    [
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/price",
        "/v2/models/price/ready",
        "/v2/models/price/versions/1",
        "/v2/models/price/versions/champion/ready",
    ],
)
def test_paths_answer_with_and_without_a_slash(http: httpx.Client, path: str) -> None:
    plain, slash = http.get(path), http.get(f"{path}/")
    assert plain.status_code == slash.status_code == 200
    assert plain.json() == slash.json()


@pytest.mark.parametrize("path", ["/v2/models/price", "/v2/models/price/versions/1"])
def test_infer_answers_with_and_without_a_slash(http: httpx.Client, path: str) -> None:
    for end in ("/infer", "/infer/"):
        body = {"inputs": list(price_tensors().values())}
        assert http.post(path + end, json=body).status_code == 200


def test_json_answers_hold_no_bytes_and_no_length(http: httpx.Client) -> None:
    answer = infer(http, price_tensors().values())
    assert answer.headers["content-type"] == "application/json"
    assert LENGTH not in answer.headers
    first = answer.json()["outputs"][0]
    assert (first["name"], first["datatype"], first["shape"]) == ("mean", "FP64", [3])


def test_each_output_is_binary_or_not_as_it_says(http: httpx.Client) -> None:
    outputs = [
        {"name": "mc_error"},
        {"name": "mean", "parameters": {"binary_data": False}},
        {"name": "total_variance", "parameters": None},
    ]
    options = {"outputs": outputs, "parameters": {"binary_data_output": True}}
    answer = infer(http, price_tensors().values(), **options)
    assert answer.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers[LENGTH])
    document = json.loads(answer.content[:length])
    error, mean, variance = document["outputs"]
    assert len(mean["data"]) == 3
    assert error["parameters"] == variance["parameters"] == {"binary_data_size": 24}
    numbers = np.frombuffer(answer.content[length:], "<f8")
    expected = predicted(http, inputs=[s | {"size": s["size"] or 0} for s in SAME])
    assert numbers.tolist() == [*expected["mc_error"], *expected["variance"]["total"]]


def test_nested_data_are_the_same_as_flat(http: httpx.Client) -> None:
    row = TREES[0]
    inputs = [
        {"name": "inputs", "shape": [1, 2], "datatype": "FP64", "data": [[row["x"], row["y"]]]},
        {"name": "image", "shape": [1, 2, 2], "datatype": "FP32", "data": [row["image"]]},
    ]
    flat = [i | {"data": np.ravel(i["data"]).tolist()} for i in inputs]
    nested, plain = infer(http, inputs, "tree"), infer(http, flat, "tree")
    assert nested.status_code == 200, nested.text
    assert nested.json() == plain.json()


def test_members_that_clients_send_as_null_or_repeat_are_taken(http: httpx.Client) -> None:
    body = {"id": None, "parameters": {"seed": None}, "outputs": None, "model_name": "price"}
    assert infer(http, price_tensors().values(), **body).status_code == 200
    refused(infer(http, price_tensors().values(), model_name="tree"), 422, "/model_name", "price")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": tensor("size", [1.0, 2.0])}, ["'wood' has 3 rows", "has 2"]),
        ({"size": tensor("size", [[1.0, 2.0]] * 3)}, ["[3, 2]", "[rows, 1]"]),
        ({"size": tensor("size", [1e39, 1, 1])}, ["/inputs/0/data/0", "float32"]),
        ({"size": tensor("size", [70000.0, 1, 1], "FP16")}, ["row 0", "float32"]),
        ({"size": tensor("size", ["1", 1, 1])}, ["/inputs/0/data/0", "number"]),
        ({"size": tensor("size", [1, 1.5, 1], "INT32")}, ["/inputs/0/data/1", "INT32"]),
        ({"size": tensor("size", [1, 1, 300], "UINT8")}, ["/inputs/0/data/2", "0 to 255"]),
        ({"size": tensor("size", [1, None, 1], "INT8")}, ["/inputs/0/data/1", "INT8"]),
        ({"size": tensor("size", [True] * 3, "BOOL")}, ["BOOL", "number feature takes UINT8"]),
        ({"size": tensor("size", [1] * 3, "BF16")}, ["/inputs/0/datatype", "'FP32'"]),
        ({"wet": tensor("wet", [1, 0, 1], "BOOL")}, ["/inputs/2/data/0", "true or false"]),
        ({"wet": tensor("wet", [1, 0, 1], "UINT8")}, ["boolean feature takes BOOL"]),
        ({"wood": tensor("wood", [1, 2, 3], "BYTES")}, ["/inputs/1/data/0", "string"]),
        ({"wood": tensor("wood", [1.0] * 3)}, ["category feature takes BYTES"]),
        ({"day": tensor("day", [DAY, "", DAY], "BYTES")}, ["/inputs/3/data/1", "RFC 3339"]),
        ({"size": tensor("siez", [1.0] * 3)}, ["/inputs/size: required", "/inputs/siez: not a"]),
        ({"more": tensor("size", [1.0] * 3)}, ["'size' is given twice"]),
        ({"more": tensor("inputs", [1.0] * 3)}, ["'size' is in 'inputs' too"]),
        ({"size": tensor("size", [1.0] * 3) | {"shape": [4]}}, ["/inputs/0/data", "4 values"]),
        ({"size": tensor("size", [[1.0]] * 3) | {"data": [[1], [1], []]}}, ["[3, 1]"]),
        ({"size": tensor("size", []) | {"shape": [0]}}, ["/inputs/0/shape", "at least one row"]),
        ({"size": tensor("size", [1.0]) | {"shape": []}}, ["/inputs/0/shape", "at least 1"]),
        ({"size": tensor("size", [1.0]) | {"shape": [2**63]}}, ["/inputs/0/shape/0"]),
        ({"size": tensor("size", [1.0]) | {"shape": [2**62] * 4}}, ["/inputs/0/data"]),
        ({"size": tensor("size", 3.0) | {"shape": [3]}}, ["/inputs/0/data"]),
        ({"size": {"name": "size", "shape": [3], "datatype": "FP64"}}, ["either data, or"]),
        ({"size": tensor("size", [1.0] * 3) | {"extra": 1}}, ["/inputs/0/extra"]),
    ],
)
def test_a_wrong_tensor_is_named(
    http: httpx.Client, change: dict[str, Any], words: list[str]
) -> None:
    refused(infer(http, (price_tensors() | change).values()), 422, *words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"inputs": []}, ["/inputs", "at least 1"]),
        ({}, ["/inputs", "required"]),
        ({"inputs": [3]}, ["/inputs/0", "object"]),
        ({"parameters": {"samples": [3]}}, ["/parameters/samples"]),
        ({"parameters": {"unheard_of": 3}}, ["/parameters/unheard_of", "unknown field"]),
        ({"parameters": {"binary_data_output": 1}}, ["/parameters/binary_data_output"]),
        ({"parameters": {"model": "tree"}}, ["/parameters/model"]),
        ({"parameters": {"intervals": 0.5}, "outputs": [{"name": "mean"}]}, ["'quantiles'"]),
        ({"outputs": [{"name": "mean"}] * 2}, ["/outputs/1/name", "twice"]),
        ({"id": 3}, ["/id", "string"]),
        ({"more": 3}, ["/more", "unknown field"]),
    ],
)
def test_a_wrong_request_is_named(
    http: httpx.Client, body: dict[str, Any], words: list[str]
) -> None:
    whole = {"inputs": list(price_tensors().values())} if body and "inputs" not in body else {}
    refused(http.post("/v2/models/price/infer", json=whole | body), 422, *words)


def binary_body(parts: Sequence[bytes], **change: Any) -> tuple[bytes, dict[str, str]]:
    """A request for `tree` whose image is binary, and its header."""
    image: dict[str, Any] = {"name": "image", "shape": [1, 2, 2], "datatype": "FP32"}
    image |= {"parameters": {"binary_data_size": 16}} | change
    document = {"inputs": [tensor("inputs", [[0.1, 0.2]]), image]}
    text = json.dumps(document).encode()
    return b"".join([text, *parts]), {LENGTH: str(len(text))}


@pytest.mark.parametrize(
    ("parts", "change", "status", "words"),
    [
        ([bytes(16)], {}, 200, []),
        ([bytes(15)], {}, 400, ["ends inside", "'image'"]),
        ([bytes(17)], {}, 400, ["1 bytes at the end"]),
        ([bytes(12)], {"parameters": {"binary_data_size": 12}}, 422, ["16 bytes, not 12"]),
        ([], {"parameters": {"binary_data_size": -1}}, 422, ["binary_data_size"]),
        ([], {"parameters": {"binary_data_size": 2**62}}, 400, ["ends inside"]),
        ([bytes(16)], {"data": [1, 2, 3, 4]}, 422, ["either data, or"]),
        ([bytes(16)], {"shape": [1, 4]}, 422, ["the model takes [rows, 2, 2]"]),
        ([struct.pack("<4f", 0, 0, float("nan"), 0)], {}, 422, ["'image', row 0"]),
        ([bytes(16)], {"parameters": {"shared_memory_region": "a"}}, 422, ["shared_memory_region"]),
    ],
)
def test_binary_data_are_measured(
    http: httpx.Client, parts: list[bytes], change: Any, status: int, words: list[str]
) -> None:
    body, headers = binary_body(parts, **change)
    answer = http.post("/v2/models/tree/infer", content=body, headers=headers)
    if status == 200:
        assert answer.status_code == 200, answer.text
    else:
        refused(answer, status, *words)


@pytest.mark.parametrize("length", ["-1", "x", "1.5", "9" * 30, "100000"])
def test_a_header_length_without_sense_is_a_400(http: httpx.Client, length: str) -> None:
    body, _ = binary_body([bytes(16)])
    answer = http.post("/v2/models/tree/infer", content=body, headers={LENGTH: length})
    refused(answer, 400, LENGTH)


@pytest.mark.parametrize(
    "data",
    [
        b"\x01\x00\x00",
        struct.pack("<I", 5) + b"oak",
        struct.pack("<I", 3) + b"oak" + b"\x00",
        struct.pack("<I", 3) + b"oak" + struct.pack("<I", 3) + b"ash",
        struct.pack("<I", 2**32 - 1),
        struct.pack("<I", 1) + b"\xff",
    ],
)
def test_texts_that_do_not_fit_are_refused(http: httpx.Client, data: bytes) -> None:
    wood = {"name": "wood", "shape": [1], "datatype": "BYTES"}
    wood["parameters"] = {"binary_data_size": len(data)}
    inputs = [*(price_tensors(1) | {"wood": wood}).values()]
    text = json.dumps({"inputs": inputs}).encode()
    headers = {LENGTH: str(len(text))}
    answer = http.post("/v2/models/price/infer", content=text + data, headers=headers)
    refused(answer, 422, "BYTES" if "shape" not in answer.text else "texts")


def test_a_byte_that_is_no_boolean_is_refused(http: httpx.Client) -> None:
    wet = {"name": "wet", "shape": [1], "datatype": "BOOL", "parameters": {"binary_data_size": 1}}
    text = json.dumps({"inputs": [*(price_tensors(1) | {"wet": wet}).values()]}).encode()
    headers = {LENGTH: str(len(text))}
    answer = http.post("/v2/models/price/infer", content=text + b"\x02", headers=headers)
    refused(answer, 422, "0 or 1")


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", b"not gzip", 400),
        ("deflate", gzip.compress(b"{}"), 400),
        ("gzip", gzip.compress(b"{}")[:-4], 400),
        ("gzip", gzip.compress(b"{}") + b"more", 400),
        ("gzip", gzip.compress(bytes(100 * 2**20), 1), 413),
        ("deflate", zlib.compress(bytes(100 * 2**20), 1), 413),
        ("br", b"", 415),
    ],
    ids=["no gzip", "wrong format", "cut", "more", "gzip bomb", "deflate bomb", "unknown"],
)
def test_a_compressed_body_is_bounded_and_checked(
    http: httpx.Client, encoding: str, body: bytes, status: int
) -> None:
    headers = {"Content-Encoding": encoding}
    refused(http.post("/v2/models/price/infer", content=body, headers=headers), status)


def test_every_refusal_under_v2_has_a_string_error(http: httpx.Client) -> None:
    infer_path = "/v2/models/price/infer"
    refused(http.get("/v2/nothing/here"), 404)
    refused(http.get("/v2/models/none"), 404, "'none'")
    refused(http.get("/v2/models/NO"), 404, "'NO'")
    refused(http.get(infer_path), 405)
    refused(http.post(infer_path, content=b"{"), 400, "JSON")
    refused(http.post(infer_path, content=b'{"a": 1, "a": 2}'), 400)
    refused(http.post(infer_path, content=b"[]"), 422)
    refused(http.post(infer_path, content=b"{}", headers={"Content-Type": "text/csv"}), 415)
    refused(http.post(f"{infer_path}?a=1", content=b"{}"), 422)
    assert "error" not in http.get("/models/none").json()


def test_rows_are_those_of_predict_even_without_a_content_type(http: httpx.Client) -> None:
    body = json.dumps({"inputs": [*price_tensors().values()]}).encode()
    answer = http.post("/v2/models/price/infer", content=body)
    assert "content-type" not in answer.request.headers
    assert answer.status_code == 200
    assert len(ROWS) == answer.json()["outputs"][0]["shape"][0]
