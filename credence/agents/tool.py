"""What a tool is, and the arguments that several tools share."""

import inspect
import json
import re
from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from credence.client import AsyncClient
from credence.types import Json

MAX_ERRORS = 100  # that are told one by one
MAX_VALUES = 2**15  # of all arguments together: pydantic needs a kilobyte per wrong value
TOO_MANY = f"more than {MAX_VALUES} values: upload the rows to POST /datasets"
_BEFORE_VALUES = ",[{"
MAX_ROWS = 100  # of a request or an answer: an agent reads each of them
MAX_WAIT_SECONDS = 50  # clients give up after a minute


class Tool(BaseModel):
    """Arguments of a tool, and what it does with them."""

    model_config = ConfigDict(extra="forbid")
    changes: ClassVar[bool] = False  # whether it creates or changes something

    @classmethod
    def title(cls) -> str:
        """The tool's name: `RowsToLabel` is `rows_to_label`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def description(cls) -> str:
        """What it does, for the agent that chooses a tool."""
        return inspect.getdoc(cls) or ""

    @classmethod
    def schema_of_arguments(cls) -> Json:
        """JSON Schema of the arguments, as short as it can be: an agent reads it with each task."""
        schema = cls.model_json_schema()
        properties = {name: _short(part) for name, part in schema["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": schema.get("required", []),
            "additionalProperties": False,
        }

    @abstractmethod
    async def run(self, client: AsyncClient) -> Json:
        """The answer, small enough for an agent to read.

        Raises:
            ClientError: the service refuses, or there is no response.
            ValueError: the arguments do not go together.
        """


def _short(part: Json) -> Json:
    """The schema of an argument without what says nothing: titles, null as the default."""
    part = {key: value for key, value in part.items() if key != "title"}
    if part.get("default", 0) is None:
        del part["default"]
        kinds = [kind for kind in part.pop("anyOf") if kind != {"type": "null"}]
        part |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return part


def refusal(tool: type[Tool], error: ValidationError) -> str:
    """What is wrong with each argument, and what would be right."""
    known = ", ".join(tool.model_fields)
    lines = []
    if error.error_count() > MAX_ERRORS:
        return f"{error.error_count()} arguments are wrong; {tool.title()} takes {known}"
    for found in error.errors():
        path = ".".join(map(str, found["loc"])) or "arguments"
        match found["type"]:
            case "extra_forbidden":
                lines.append(f"{path}: unknown argument; {tool.title()} takes {known}")
            case "missing":
                lines.append(f"{path}: is required: {tool.model_fields[path].description}")
            case "value_error":
                lines.append(f"{path}: {found['ctx']['error']}")
            case _:
                given = json.dumps(found["input"], default=str)[:80]
                lines.append(f"{path}: {_plain(found['msg'])}, not {given}")
    return "\n".join(lines)


def _plain(message: str) -> str:
    """`must be at most 100` instead of `Input should be less than or equal to 100`."""
    message = message.replace("Input should", "must").replace("String should", "must")
    return message.replace("less than or equal to", "at most").replace(
        "greater than or equal to", "at least"
    )


def _from_text(value: Any) -> Any:
    """The value in a text of JSON: some clients write lists and objects as texts.

    Its values are counted by the signs before them, so that none is made if they are too many.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        if sum(value.count(sign) for sign in _BEFORE_VALUES) > MAX_VALUES:
            raise ValueError(TOO_MANY)
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def check_size(value: Any) -> None:
    """Raise `ValueError` if there are more than `MAX_VALUES` values within."""
    left, count = [value], 0
    while left:
        here = left.pop()
        inner = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        count += len(inner)
        if count > MAX_VALUES:
            raise ValueError(TOO_MANY)
        left += [one for one in inner if isinstance(one, dict | list)]


Rows = Annotated[
    list[dict[str, Any]],
    Field(min_length=1, max_length=MAX_ROWS),
    BeforeValidator(_from_text),
]
ModelName = Annotated[str, Field(description="name of a model: see list_models")]
VersionReference = Annotated[
    int | str | None, Field(description="number or alias of a version; default: the newest")
]
DatasetId = Annotated[
    str, Field(pattern="^ds_", description="id of a data set, from profile_data or list_data")
]
Parsed = BeforeValidator(_from_text)
Wait = Annotated[
    int,
    Field(ge=0, le=MAX_WAIT_SECONDS, description="wait so long for the end; 0: do not wait"),
]


def page(client: AsyncClient, path: str) -> str:
    """The address of a page of the dashboard, for people."""
    return f"{client.url}/ui{path}"
