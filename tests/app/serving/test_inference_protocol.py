"""The Open Inference Protocol v2: Triton's own client, and the protocol's traps by hand."""

import gzip
import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import numpy as np
import pytest
from tritonclient import http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from tests.app.running import Service, answered
from tests.app.serving.wires import close
from tests.app.test_bodies import problem

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
MATRIX = {"inputs": PLANE, "image": IMAGES}
TREE_ROWS = [
    {"x": x, "y": y, "image": image.astype(float).tolist()}
    for (x, y), image in zip(PLANE.tolist(), IMAGES, strict=True)
]


@pytest.fixture
def client(service: Service) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(service.url.removeprefix("http://")) as client:
        yield client


def tensors(arrays: dict[str, np.ndarray], *, binary: bool = True) -> list[triton.InferInput]:
    result = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        result.append(tensor.set_data_from_numpy(array, binary_data=binary))
    return result


def predicted(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = answered(http.post("/predict", json={"model": "price", "inputs": SAME} | body))
    return answer.json()


def tensor(name: str, array: np.ndarray | Sequence[Any], datatype: str = "FP64") -> dict[str, Any]:
    return {
        "name": name,
        "shape": list(np.shape(array)),
        "datatype": datatype,
        "data": array.tolist() if isinstance(array, np.ndarray) else array,
    }


def price_tensors() -> dict[str, dict[str, Any]]:
    """The inputs of `price` in JSON, without a missing value."""
    datatypes = {"wood": "BYTES", "wet": "BOOL", "day": "BYTES", "size": "FP64"}
    return {
        name: tensor(name, np.nan_to_num(a) if name == "size" else a, datatypes[name])
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
    assert result.as_numpy("mean").tolist() == close(expected["mean"])
    assert result.as_numpy("total_variance").tolist() == close(expected["variance"]["total"])
    assert result.as_numpy("mc_error").tolist() == close(expected["mc_error"])


def test_nan_is_a_missing_value(client: triton.InferenceServerClient, http: httpx.Client) -> None:
    expected = close(predicted(http)["mean"])
    assert client.infer("price", tensors(INPUTS)).as_numpy("mean").tolist() == expected
    listed = price_tensors() | {"size": tensor("size", [1.5, None, -1.0])}
    assert infer(http, listed.values()).json()["outputs"][0]["data"] == expected
    with pytest.raises(InferenceServerException, match="'x'"):
        client.infer("tree", tensors({"inputs": PLANE * np.nan, "image": IMAGES}))


def test_draws_and_quantiles_come_when_they_are_asked_for(
    client: triton.InferenceServerClient, http: httpx.Client
) -> None:
    expected = predicted(http, samples=8, return_draws=True, intervals=[0.5, 0.9])
    names = ("samples", "quantiles", "conformal_quantiles")
    wanted = [triton.InferRequestedOutput(name) for name in names]
    options = {"samples": 8, "intervals": "0.5,0.9"}
    result = client.infer("price", tensors(INPUTS), outputs=wanted, parameters=options)
    assert result.as_numpy("samples").tolist() == close(expected["draws"])
    for name, kind in (("quantiles", "credible"), ("conformal_quantiles", "conformal")):
        quantiles = result.as_numpy(name)
        assert quantiles.shape == (3, 2, 2)
        intervals = [one for one in expected["intervals"] if one["kind"] == kind]
        for i, interval in enumerate(intervals):
            assert quantiles[:, i, 0].tolist() == close(interval["lower"])
            assert quantiles[:, i, 1].tolist() == close(interval["upper"])
    default = client.infer("price", tensors(INPUTS), parameters={"intervals": 0.5})
    assert default.as_numpy("quantiles").shape == (3, 1, 2)
    assert client.infer("price", tensors(INPUTS)).as_numpy("quantiles") is None


def test_classes_have_entropies(client: triton.InferenceServerClient, http: httpx.Client) -> None:
    expected = predicted(http, model="tree", inputs=TREE_ROWS, samples=8)
    result = client.infer("tree", tensors(MATRIX), parameters={"samples": 8})
    assert result.as_numpy("probabilities").tolist() == close(expected["probabilities"])
    entropies = {
        "predictive_entropy": "total", "expected_entropy": "aleatoric",
        "mutual_information": "epistemic",
    }  # fmt: skip
    for name, kind in entropies.items():
        assert result.as_numpy(name).tolist() == close(expected["entropy"][kind])
    names = ["labels", "out_of_distribution", "samples"]
    for binary in (True, False):
        wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name in names]
        result = client.infer("tree", tensors(MATRIX), outputs=wanted, parameters={"samples": 8})
        labels = [v.decode() if binary else v for v in result.as_numpy("labels").tolist()]
        assert labels == expected["labels"]
        assert result.as_numpy("out_of_distribution").dtype == bool
        assert result.as_numpy("samples").shape == (8, 2, 3)


@pytest.mark.parametrize(
    ("dtype", "binary"), [("f2", True), ("f4", False), ("i1", True), ("i8", False), ("u4", True)]
)
def test_numbers_and_tensors_come_in_all_widths(
    client: triton.InferenceServerClient, http: httpx.Client, dtype: str, binary: bool
) -> None:
    rows = [{"x": 1, "y": 2, "image": [[1, 0], [0, 1]]}]
    expected = predicted(http, model="tree", inputs=rows, samples=4)["mean"]
    arrays = {"x": np.array([1]), "y": np.array([[2]]), "image": np.eye(2)[None]}
    inputs = tensors({name: a.astype(dtype) for name, a in arrays.items()}, binary=binary)
    result = client.infer("tree", inputs, parameters={"samples": 4})
    assert result.as_numpy("probabilities").tolist() == close(expected)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests_are_inflated(
    client: triton.InferenceServerClient, http: httpx.Client, algorithm: str
) -> None:
    result = client.infer("price", tensors(INPUTS), request_compression_algorithm=algorithm)
    assert result.as_numpy("mean").tolist() == close(predicted(http)["mean"])


def test_the_protocols_timeout_is_a_deadline(client: triton.InferenceServerClient) -> None:
    assert client.infer("price", tensors(INPUTS), timeout=30_000_000).as_numpy("mean").size == 3
    with pytest.raises(InferenceServerException) as caught:
        client.infer("price", tensors(INPUTS), timeout=1)
    assert caught.value.status() == "503"


# ---- by hand


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
    assert numbers.tolist() == close([*expected["mc_error"], *expected["variance"]["total"]])


def test_every_refusal_has_a_string_error(http: httpx.Client) -> None:
    paths = ("/nothing/here", "/models/none", "/models/NO", "/models/price/versions/9")
    for path in paths:
        for end in ("", "/"):
            refused(http.get(f"/v2{path}{end}"), 404)
    for version in ("", "/versions/1"):
        path = f"/v2/models/price{version}/infer"
        refused(http.get(path), 405)
        refused(http.post(f"{path}?a=1", content=b"{}"), 422)
        refused(http.post(path, content=b"{}", headers={"Content-Type": "text/csv"}), 415)
        for body, status in ((b"{", 400), (b'{"a": 1, "a": 2}', 400), (b"[]", 422), (b"{}", 422)):
            refused(http.post(path, content=body), status)
    refused(http.post("/v2/models/none/infer", json={"inputs": [*price_tensors().values()]}), 404)
    assert "error" not in http.get("/models/none").json()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": tensor("size", [1.0, 2.0])}, "'wood'"),
        ({"size": tensor("size", [[1.0, 2.0]] * 3)}, "[rows, 1]"),
        ({"size": tensor("size", [1e39, 1, 1])}, "/inputs/0/data/0"),
        ({"size": tensor("size", [70000.0, 1, 1], "FP16")}, "row 0"),
        ({"size": tensor("size", ["1", 1, 1])}, "/inputs/0/data/0"),
        ({"size": tensor("size", [1, 1.5, 1], "INT32")}, "/inputs/0/data/1"),
        ({"size": tensor("size", [1, 1, 300], "UINT8")}, "/inputs/0/data/2"),
        ({"size": tensor("size", [1] * 3, "BF16")}, "/inputs/0/datatype"),
        ({"wet": tensor("wet", [1, 0, 1], "BOOL")}, "/inputs/2/data/0"),
        ({"wood": tensor("wood", [1.0] * 3)}, "BYTES"),
        ({"day": tensor("day", [DAY, "", DAY], "BYTES")}, "/inputs/3/data/1"),
        ({"size": tensor("siez", [1.0] * 3)}, "/inputs/siez"),
        ({"more": tensor("size", [1.0] * 3)}, "twice"),
        ({"more": tensor("inputs", [1.0] * 3)}, "'inputs'"),
        ({"size": tensor("size", [1.0] * 3) | {"shape": [4]}}, "/inputs/0/data"),
        ({"size": tensor("size", [[1.0]] * 3) | {"data": [[1], [1], []]}}, "[3, 1]"),
        ({"size": tensor("size", []) | {"shape": [0]}}, "/inputs/0/shape"),
        ({"size": tensor("size", [1.0]) | {"shape": [2**62] * 4}}, "/inputs/0/data"),
        ({"size": {"name": "size", "shape": [3], "datatype": "FP64"}}, "data"),
    ],
)
def test_a_wrong_tensor_is_named(http: httpx.Client, change: dict[str, Any], said: str) -> None:
    refused(infer(http, (price_tensors() | change).values()), 422, said)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"inputs": []}, "/inputs"),
        ({"inputs": [3]}, "/inputs/0"),
        ({"parameters": {"samples": [3]}}, "/parameters/samples"),
        ({"parameters": {"unheard_of": 3}}, "/parameters/unheard_of"),
        ({"parameters": {"model": "tree"}}, "/parameters/model"),
        ({"parameters": {"intervals": 0.5}, "outputs": [{"name": "mean"}]}, "'quantiles'"),
        ({"outputs": [{"name": "mean"}] * 2}, "/outputs/1/name"),
        ({"id": 3}, "/id"),
    ],
)
def test_a_wrong_request_is_named(http: httpx.Client, body: dict[str, Any], path: str) -> None:
    whole = {"inputs": list(price_tensors().values())} | body
    refused(http.post("/v2/models/price/infer", json=whole), 422, path)


def binary_body(parts: Sequence[bytes], **change: Any) -> tuple[bytes, dict[str, str]]:
    """A request for `tree` whose image is binary, and its header."""
    image: dict[str, Any] = {"name": "image", "shape": [1, 2, 2], "datatype": "FP32"}
    image |= {"parameters": {"binary_data_size": 16}} | change
    document = {"inputs": [tensor("inputs", [[0.1, 0.2]]), image]}
    text = json.dumps(document).encode()
    return b"".join([text, *parts]), {LENGTH: str(len(text))}


@pytest.mark.parametrize(
    ("parts", "change", "status"),
    [
        ([bytes(16)], {}, 200),
        ([bytes(15)], {}, 400),
        ([bytes(17)], {}, 400),
        ([bytes(12)], {"parameters": {"binary_data_size": 12}}, 422),
        ([], {"parameters": {"binary_data_size": -1}}, 422),
        ([], {"parameters": {"binary_data_size": 2**62}}, 400),
        ([bytes(16)], {"data": [1, 2, 3, 4]}, 422),
        ([bytes(16)], {"shape": [1, 4]}, 422),
        ([struct.pack("<4f", 0, 0, float("nan"), 0)], {}, 422),
        ([bytes(16)], {"parameters": {"shared_memory_region": "a"}}, 422),
    ],
)
def test_binary_data_are_measured(
    http: httpx.Client, parts: list[bytes], change: Any, status: int
) -> None:
    body, headers = binary_body(parts, **change)
    answer = http.post("/v2/models/tree/infer", content=body, headers=headers)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("length", ["-1", "x", "9" * 30, "100000"])
def test_a_header_length_without_sense_is_a_400(http: httpx.Client, length: str) -> None:
    body, _ = binary_body([bytes(16)])
    answer = http.post("/v2/models/tree/infer", content=body, headers={LENGTH: length})
    refused(answer, 400, LENGTH)


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", b"not gzip", 400),
        ("deflate", gzip.compress(b"{}"), 400),
        ("gzip", gzip.compress(b"{}")[:-4], 400),
        ("gzip", gzip.compress(bytes(100 * 2**20), 1), 413),
        ("br", b"", 415),
    ],
    ids=["no gzip", "wrong format", "cut", "bomb", "unknown"],
)
def test_a_compressed_body_is_bounded_and_checked(
    http: httpx.Client, encoding: str, body: bytes, status: int
) -> None:
    headers = {"Content-Encoding": encoding}
    refused(http.post("/v2/models/price/infer", content=body, headers=headers), status)
