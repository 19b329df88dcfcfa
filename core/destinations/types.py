"""Types of columns that every engine and every table format knows."""

import pyarrow as pa


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type, with lists of any size, values in place of their codes, and ordinary strings."""
    if pa.types.is_fixed_size_list(type_) or pa.types.is_list(type_):
        return pa.list_(plain_type(type_.value_type))
    if pa.types.is_struct(type_):
        fields = [type_.field(place) for place in range(type_.num_fields)]
        return pa.struct([pa.field(one.name, plain_type(one.type)) for one in fields])
    if pa.types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if pa.types.is_large_string(type_):
        return pa.string()
    return type_


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """A schema of such types, without metadata."""
    return pa.schema([pa.field(one.name, plain_type(one.type)) for one in schema])
