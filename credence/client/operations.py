"""A method of both clients, written once.

It is a generator, an `Operation`: it yields each `Request` to send and each `Sleep`, and returns
its result. A `Sync` class runs it while the caller waits, an `Async` class in an event loop. The
decorators give type checkers the signature for both.

    class Calls:
        @method
        def job(self, job_id: str) -> Operation[Job]: ...

    Client().job("job_1")            # Job
    await AsyncClient().job("job_1") # Job
    Calls.job(client, "job_1")       # Operation[Job], part of another one by `yield from`
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, overload

from credence.client.requests import Request

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Sleep:
    """A pause."""

    seconds: float


Operation = Generator[Request[Any] | Sleep, Any, T]


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list that the service sends in pages: `{"data": […], "next_cursor": …}`."""

    page: Callable[[str | None], Operation[Any]]


class Sync(ABC):
    """Runs operations while its caller waits."""

    @abstractmethod
    def run(self, operation: Operation[T]) -> T:
        """Run the operation and return its result; its exceptions are passed on."""

    def iterate(self, listing: Listing[T]) -> Iterator[T]:
        """The items of all pages."""
        cursor: str | None = None
        while True:
            page = self.run(listing.page(cursor))
            yield from page["data"]
            if (cursor := page["next_cursor"]) is None:
                return


class Async(ABC):
    """Runs operations in an event loop."""

    @abstractmethod
    async def run(self, operation: Operation[T]) -> T:
        """Run the operation and return its result; its exceptions are passed on."""

    async def iterate(self, listing: Listing[T]) -> AsyncIterator[T]:
        """The items of all pages."""
        cursor: str | None = None
        while True:
            page = await self.run(listing.page(cursor))
            for item in page["data"]:
                yield item
            if (cursor := page["next_cursor"]) is None:
                return


class method(Generic[P, T]):  # noqa: N801 - read as a keyword
    """A method of both clients; accessed on the class, it is the operation itself."""

    def __init__(self, operation: Callable[Concatenate[Any, P], Operation[T]]) -> None:
        self._operation = operation
        _look_like(self, operation)

    @overload
    def __get__(self, owner: None, _: Any) -> Callable[Concatenate[Any, P], Operation[T]]: ...
    @overload
    def __get__(self, owner: Sync, _: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Async, _: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, owner: Any, _: Any) -> Callable[..., Any]:
        return self._operation if owner is None else _bound(self, self._operation, "run", owner)


class listing(Generic[P, T]):  # noqa: N801 - read as a keyword
    """A method of both clients whose result is iterated over."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self._describe = describe
        _look_like(self, describe)

    @overload
    def __get__(self, owner: None, _: Any) -> Callable[Concatenate[Any, P], Listing[T]]: ...
    @overload
    def __get__(self, owner: Sync, _: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, owner: Async, _: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, owner: Any, _: Any) -> Callable[..., Any]:
        return self._describe if owner is None else _bound(self, self._describe, "iterate", owner)


def _look_like(descriptor: Any, function: Callable[..., Any]) -> None:
    """Copy a function's documentation and signature, with the result that callers get."""
    update_wrapper(descriptor, function)
    signature = inspect.signature(function)
    descriptor.__signature__ = signature.replace(return_annotation=_result(signature))


def _result(signature: inspect.Signature) -> Any:
    """The result type of an operation, or the item type of a listing; annotations may be text."""
    annotation = signature.return_annotation
    if isinstance(annotation, str):
        return annotation.partition("[")[2].removesuffix("]")
    result = get_args(annotation)[-1]
    return signature.empty if isinstance(result, TypeVar) else result


def _bound(descriptor: Any, function: Callable[..., Any], verb: str, owner: Any) -> Any:
    @wraps(function)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self, verb)(function(self, *args, **options))

    run.__signature__ = descriptor.__signature__  # type: ignore[attr-defined]
    return MethodType(run, owner)
