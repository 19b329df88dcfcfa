"""Compares two schemas: does the later one only add to the earlier one?"""

from sqlalchemy import Connection, inspect

Column = tuple[str, bool, bool]  # type, may be null, has a default
Shape = dict[str, dict[str, Column]]


def shape(connection: Connection) -> Shape:
    """The columns of each table."""
    inspector = inspect(connection)
    return {
        table: {
            column["name"]: (str(column["type"]), column["nullable"], column["default"] is not None)
            for column in inspector.get_columns(table)
        }
        for table in inspector.get_table_names()
    }


def contractions(before: Shape, after: Shape) -> list[str]:
    """What a release that knows only `before` does not bear in `after`."""
    found = [f"{table} is gone" for table in before if table not in after]
    for table in before.keys() & after.keys():
        found += _contracted(table, before[table], after[table])
    return sorted(found)


def _contracted(table: str, before: dict[str, Column], after: dict[str, Column]) -> list[str]:
    found = [f"{table}.{name} is gone" for name in before if name not in after]
    for name, (kind, nullable, default) in after.items():
        if name not in before:
            if not nullable and not default:
                found.append(f"{table}.{name} is needed, and has no default")
        elif kind != before[name][0]:
            found.append(f"{table}.{name} was {before[name][0]}, and is {kind}")
        elif nullable and not before[name][1]:
            found.append(f"{table}.{name} may be empty")
        elif not nullable and before[name][1]:
            found.append(f"{table}.{name} is needed, and was not")
    return found
