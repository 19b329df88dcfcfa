"""Train one model by several actors of Ray, each with cores or a card of its own.

    python -m credence.engines.ray_torchrun --ranks 2 --cpus 4 \\
        --config training.json --data s3://bucket/rows --to s3://bucket/concrete.tar

The ranks are those of `credence.engines.torchrun`; Ray places and starts them instead of torchrun.
"""

import argparse
import os
import socket
import sys

import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from credence.engines.places import Places
from credence.engines.ranks import Arguments, RankLost, TrainingFailed, run_rank

_OTHERS_SECONDS = 30.0  # for the other ranks to say why they ended, once one has


class Rank:
    """A rank in a process of Ray."""

    def address(self) -> tuple[str, int]:
        """Where rank 0 can listen: its node, and a port that is free."""
        with socket.create_server(("", 0)) as listener:
            return ray.util.get_node_ip_address(), listener.getsockname()[1]

    def train(self, arguments: Arguments, environment: dict[str, str]) -> None:
        """Raises as `run_rank`."""
        os.environ.update(environment)
        run_rank(arguments)


def train(arguments: Arguments, places: Places) -> None:
    """Train on the cluster that `ray.init` has joined. Rank 0 writes the model.

    Raises:
        TrainingFailed: there is no model: as `run_rank`, a rank was lost, or there is no room.
    """
    group = _reserved(places)
    try:
        where = PlacementGroupSchedulingStrategy(group)
        actor = ray.remote(Rank).options(
            num_cpus=places.cpus,
            num_gpus=places.gpus,
            scheduling_strategy=where,
            runtime_env={"env_vars": {"OMP_NUM_THREADS": str(places.cpus)}},
        )
        actors = [actor.remote() for _ in range(places.ranks)]
        host, port = ray.get(actors[0].address.remote())
        meeting = {"MASTER_ADDR": host, "MASTER_PORT": str(port), "LOCAL_RANK": "0"}
        runs = []
        for rank, one in enumerate(actors):
            environment = {**meeting, "RANK": str(rank), "WORLD_SIZE": str(places.ranks)}
            runs.append(one.train.remote(arguments, environment))
        _wait(runs)
    finally:
        remove_placement_group(group)  # ends the actors


def _reserved(places: Places) -> PlacementGroup:
    bundle = {"CPU": float(places.cpus), "GPU": float(places.gpus)}
    group = placement_group(
        [{name: number for name, number in bundle.items() if number}] * places.ranks,
        strategy=places.strategy,
    )
    if not group.wait(places.seconds):
        remove_placement_group(group)
        wanted = f"{places.ranks} ranks of {places.cpus} CPU and {places.gpus} GPU"
        raise TrainingFailed(
            f"the cluster has no room for {wanted} within {places.seconds:g} s: it has "
            f"{ray.cluster_resources().get('CPU', 0):g} CPU and "
            f"{ray.cluster_resources().get('GPU', 0):g} GPU in all"
        )
    return group


def _wait(runs: list["ray.ObjectRef[None]"]) -> None:
    """Return when all ranks have ended well; raise the error that tells most."""
    waiting, errors = list(runs), []
    seconds: float | None = None
    while waiting:
        done, waiting = ray.wait(waiting, timeout=seconds)
        if not done:
            break
        errors += [error for run in done if (error := _error(run, runs.index(run)))]
        seconds = _OTHERS_SECONDS if errors else None
    if errors:
        raise min(errors, key=lambda error: type(error) is RankLost)  # others follow from a loss


def _error(run: "ray.ObjectRef[None]", rank: int) -> TrainingFailed | None:
    try:
        ray.get(run)
    except RayActorError as error:
        return TrainingFailed(f"rank {rank} was lost: {_first_line(error)}")
    except RayTaskError as error:
        if isinstance(error.cause, TrainingFailed):
            return type(error.cause)(f"rank {rank}: {error.cause}")
        raise
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def main() -> None:
    description = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="credence.engines.ray_torchrun", description=__doc__, formatter_class=description
    )
    Arguments.add_to(parser)
    Places.add_to(parser)
    parsed = parser.parse_args()
    ray.init()  # the cluster of RAY_ADDRESS, or one of this machine
    try:
        train(Arguments.of(parsed), Places.of(parsed))
    except TrainingFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
