"""Bodies that are files of rows, read within the limits of the process."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from fastapi import Request

from app.dependencies import Services, caller_of
from app.http.bodies import read_inflated
from app.serving.file_format import MAX_TABLE_BYTES
from core.datasets.apart import Workplace
from core.exceptions import TooLarge

T = TypeVar("T")
Read = Callable[[bytes, Workplace, ExitStack], T]


async def read_row_file(
    request: Request, services: Services, files: ExitStack, read: Read[T], advice: str
) -> T:
    """What `read` finds in the body, in a thread of those for uploads.

    Args:
        files: removes the temporary files; close it once the request has been answered.
        advice: what to do with a body that is too large.
    """
    try:
        body = await read_inflated(request)
    except TooLarge as error:
        raise TooLarge(f"{error}{advice}") from error
    scratch, share = services.context.scratch.path, caller_of(request).share
    at = Workplace(MAX_TABLE_BYTES, services.context.memory, scratch, share)
    return await services.writers.run(share, read, body, at, files)
