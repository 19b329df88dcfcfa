"""Strings in all of Arrow's encodings."""

import pyarrow as pa


def is_string(type_: pa.DataType) -> bool:
    """Whether the type is a string or a dictionary of strings."""
    if isinstance(type_, pa.DictionaryType):
        return is_string(type_.value_type)
    return (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )
