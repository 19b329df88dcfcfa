"""Train one model by several processes, on one machine or many, without the service.

    python -m torch.distributed.run --nproc-per-node 2 -m credence.engines.torchrun \\
        --config training.json --data rows.parquet --to concrete.tar

Every rank reads all rows; rank 0 writes the archive, which `POST /models/{name}/versions` takes.
"""

import argparse
import os
import signal
import sys
import threading

from credence.engines.ranks import Arguments, TrainingFailed, run_rank


def main() -> None:
    """The rank that torchrun started. SIGTERM to rank 0 stops all after a checkpoint."""
    description = __doc__ or ""
    parser = argparse.ArgumentParser(
        prog="credence.engines.torchrun",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    Arguments.add_to(parser)
    arguments, stopping = Arguments.of(parser.parse_args()), threading.Event()
    if "RANK" not in os.environ:
        parser.error("start it by torchrun: python -m torch.distributed.run -m … (see --help)")
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    try:
        run_rank(arguments, stopping.is_set)
    except TrainingFailed as error:
        sys.exit(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}: {error}")


if __name__ == "__main__":
    main()
