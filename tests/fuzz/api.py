"""Requests made of the service's own OpenAPI document; answers must be what the document says."""

from collections import Counter
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fuzz.target import Target
from tests.waiting import PATIENCE

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
DESTRUCTIVE = {("DELETE", "/models/{name}"), ("DELETE", "/models/{name}/versions/{version}")}
Answered = Counter[tuple[str, int]]


def operations(target: Target) -> list[Any]:
    """Every operation of the document but those that take the models away; what deletes is last.

    The server is open on a loopback address, so that no request needs a key.
    """
    document = requests.get(f"{target.url}/openapi.json", timeout=PATIENCE).json()
    for path in document["paths"].values():
        for operation in path.values():
            operation.pop("security", None)
    schemathesis.serializer.alias("application/x-tar", "application/octet-stream")
    schema = schemathesis.openapi.from_dict(document)
    found = [result.ok() for result in schema.get_all_operations()]
    kept = [o for o in found if (o.method.upper(), o.path) not in DESTRUCTIVE]
    return sorted(kept, key=lambda operation: operation.method.upper() == "DELETE")


def attack(target: Target, operation: Any, examples: int, seed: int, answered: Answered) -> None:
    """Send `examples` requests, half of them against the document, and check each answer.

    Raises:
        Whatever schemathesis has found, with the command that repeats it.
    """
    label = f"{operation.method.upper()} {operation.path}"
    cases = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @seeded(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, data=st.data())
    def send(case: Any, data: st.DataObject) -> None:
        _name_real_things(target, case, data)
        answer = _called(case, target)
        answered[label, answer.status_code] += 1
        target.learn(answer.text_lossy() if len(answer.content) < 2**20 else "")
        if answer.status_code == 503 and "retry-after" in answer.headers:
            return
        case.validate_response(answer, checks=CHECKS)

    send()


def _called(case: Any, target: Target) -> Any:
    try:
        return case.call(target.url, timeout=PATIENCE)
    except requests.RequestException as error:
        error.add_note(case.as_curl_command()[:4000])  # else nobody knows what was asked
        raise


def _name_real_things(target: Target, case: Any, data: st.DataObject) -> None:
    """Most names that chance makes are of nothing: every other one becomes one that is there."""
    containers = [case.path_parameters, case.query]
    if isinstance(case.body, dict):
        containers.append(case.body)
        if meant := target.meant(case.operation.path):
            kept = data.draw(st.sampled_from([case.body, case.body, {}]))
            case.body = kept | data.draw(st.sampled_from([{}, *meant]))
    for container in containers:
        for name in list(container or ()):
            real = target.names(name)
            if real and data.draw(st.booleans()):
                container[name] = data.draw(st.sampled_from(real))
