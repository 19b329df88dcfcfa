"""From two tables to predictions with uncertainty, over HTTP and from nothing: `make demo`.

Starts its own service, trains on two real data sets, predicts rows that the service has never seen,
and scores the predictions. Every number that it prints is computed in this run.
"""

import sys
import time
from pathlib import Path

from credence.client import Client
from credence.exceptions import ClientError
from examples.demo_parts import digits, latency, pictures, regression
from examples.demo_parts.service import running_service

OUTPUT = Path("demo")
LOG = OUTPUT / "service.log"


def main() -> int:
    """Run the demo; 1 if something fails, 130 after Ctrl-C. The service is always stopped."""
    OUTPUT.mkdir(exist_ok=True)
    started = time.monotonic()
    try:
        with running_service(LOG) as client:
            run_chapters(client)
    except KeyboardInterrupt:
        print("\nstopped; no process is left")
        return 130
    except (RuntimeError, ClientError) as error:
        print(f"\nthe demo failed: {error}\nthe service's log is {LOG}", file=sys.stderr)
        return 1
    print(f"\ndone in {time.monotonic() - started:.0f} s; the service is stopped")
    return 0


def run_chapters(client: Client) -> None:
    """Run all chapters, one after the other."""
    print(f"credence serve  ready on {client.url}")
    patients = regression.run(client, OUTPUT)
    images = digits.run(client, OUTPUT)
    latency.run(client, "diabetes", patients.row)
    paths = pictures.draw_all(patients, images, OUTPUT)
    print("\npictures        " + "\n                ".join(map(str, paths)))


if __name__ == "__main__":
    sys.exit(main())
