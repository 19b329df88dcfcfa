"""`credence backup` and `credence restore`: the data directory as one file."""
# ruff: noqa: PLC0415

from pathlib import Path
from typing import Annotated

import typer

from credence.rendering import fail
from credence.serving.commands.service import DataDir

EXIT_REFUSED = 1
EXIT_WRONG_SETTING = 2


def backup(
    file: Annotated[Path, typer.Argument(help="The tar file to write; it must not exist.")],
    data_dir: DataDir = None,
) -> None:
    """Write database and files to one file; the service may keep running.

    Works for SQLite and a folder, as `credence serve` has them. For PostgreSQL or a bucket see
    docs/operations.md. The file contains data and hashes of keys: protect it as you protect those.

    Example: `credence backup monday.tar --data-dir /var/lib/credence`
    """
    from core.exceptions import InvalidSetting, Unavailable
    from core.maintenance.backup import BackupFailed, back_up
    from core.settings import load_settings

    try:
        settings = load_settings(**({} if data_dir is None else {"data_dir": data_dir}))
        manifest = back_up(settings, file)
    except InvalidSetting as error:
        fail(str(error), EXIT_WRONG_SETTING)
    except (BackupFailed, Unavailable, OSError) as error:
        fail(str(error), EXIT_REFUSED)
    size = sum(file.size for file in manifest.files)
    typer.echo(f"wrote {file}: {len(manifest.files)} files, {size} bytes")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `credence backup` wrote.")],
    data_dir: Annotated[Path, typer.Option(help="A new or an empty directory.")],
) -> None:
    """Create a data directory from a backup, after comparing every file with its checksum.

    Jobs that were running are queued again and continue from their checkpoints; keys stay valid.

    Example: `credence restore monday.tar --data-dir /var/lib/credence`
    """
    from core.exceptions import InvalidSetting, Unavailable
    from core.maintenance.backup import BackupFailed
    from core.maintenance.restore import restore as restore_backup

    try:
        manifest = restore_backup(file, data_dir.expanduser().resolve())
    except (BackupFailed, InvalidSetting, Unavailable, OSError) as error:
        fail(str(error), EXIT_REFUSED)
    made = f"of {manifest.created_at:%Y-%m-%d %H:%M} UTC by release {manifest.release}"
    typer.echo(f"restored {len(manifest.files)} files {made}")
    typer.echo(f"start it with `credence serve --data-dir {data_dir}`")
