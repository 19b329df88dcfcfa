"""Write the dashboards: `python docker/grafana/build.py [FOLDER]`.

The JSON files in `dashboards/` are its output. A test compares them.
"""

import json
import sys
from pathlib import Path

from boards import serving, training, uncertainty
from grafana_foundation_sdk.cog.encoder import JSONEncoder

HERE = Path(__file__).parent


def write(folder: Path) -> None:
    """Write one file per dashboard."""
    for board in (serving, training, uncertainty):
        text = json.dumps(board.build(), cls=JSONEncoder, indent=1, ensure_ascii=False)
        name = board.__name__.rpartition(".")[2]
        (folder / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "dashboards")
