"""Signing in, as a browser asks for it."""

from pydantic import Field

from app.schemas.common import Request


class SignInRequest(Request):
    """A key, to be kept in a cookie."""

    key: str = Field(min_length=1, max_length=512)
