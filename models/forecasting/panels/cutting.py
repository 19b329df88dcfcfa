"""Windows of a panel, cut where they are used."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from models.features.rows import Rows, evenly_spread
from models.forecasting.panels.observed import held
from models.forecasting.panels.panel import Panel
from models.forecasting.windows import Frame, Pasts

HELD_BYTES = 2**28  # of network inputs: windows that take more are cut for each mini-batch
_CHUNK = 2**14  # windows that are cut at once
_FIT_VALUES = 2**23  # of the windows that the frame's scales are fitted to: 64 MB


@dataclass(frozen=True, kw_only=True)
class CutRows(Rows):
    """Windows that predict the steps at these positions. An index cuts them.

    `inputs` and `targets` are empty: nothing is held but the positions.
    """

    panel: Panel
    frame: Frame
    at: Int64[Tensor, "windows"]

    @classmethod
    def of(cls, panel: Panel, frame: Frame, at: Int64[Tensor, "windows"]) -> "CutRows":
        """Windows of a panel, none of them cut."""
        width = frame.context * (frame.channels + panel.width) + panel.static.shape[1]
        nothing = panel.dynamic.new_empty(0)
        return cls(nothing.reshape(0, width), nothing, panel=panel, frame=frame, at=at)

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, index: Tensor | slice) -> Rows:
        return _cut(self.panel, self.frame, self.at[index])

    @property
    def num_bytes(self) -> int:
        """Memory that the inputs of all windows would take."""
        return 4 * len(self) * self.inputs.shape[1]

    def held(self) -> Rows:
        """All windows, cut."""
        cut = [self[start : start + _CHUNK] for start in range(0, len(self), _CHUNK)]
        return Rows.concatenate([Rows(self.inputs, self.targets), *cut])

    def held_if_small(self) -> Rows:
        """All windows cut if they take little memory, otherwise these."""
        return self.held() if self.num_bytes <= HELD_BYTES else self

    def thinned(self, most: int) -> Rows:
        """At most so many windows, and no more than may be held, evenly spread and cut."""
        room = HELD_BYTES // (4 * max(1, self.inputs.shape[1]))
        if len(self) <= (count := max(1, min(most, room))):
            return self.held()
        return CutRows.of(self.panel, self.frame, self.at[evenly_spread(len(self), count)]).held()


def fit_frame(panel: Panel, frame: Frame, at: Int64[Tensor, "rows"]) -> Frame:
    """The frame with the scales of these windows, or of as many as fit into memory.

    Raises:
        InvalidData: if nothing ever changes.
    """
    most = max(1, _FIT_VALUES // (frame.span + 1))
    chosen = at if len(at) <= most else at[evenly_spread(len(at), most)]
    return frame.fit(*_values(panel, frame, chosen)[:2])


def _values(
    panel: Panel, frame: Frame, at: Int64[Tensor, "windows"]
) -> tuple[Pasts, Float64[Tensor, "rows"], Int64[Tensor, "rows context"]]:
    """The past of each window, the value that follows, and the positions after the context's."""
    positions = at.unsqueeze(1) + torch.arange(-frame.span, 1, device=at.device)
    values = panel.values[positions]
    return values[:, :-1], values[:, -1], positions[:, -frame.context :]


def _cut(panel: Panel, frame: Frame, at: Int64[Tensor, "rows"]) -> Rows:
    """Each step of a window has the inputs known before the step after it, and its own observed."""
    past, following, after = _values(panel, frame, at)
    series = panel.series_of(at)
    parts = [frame.read(past).inputs.float(), panel.dynamic[after]]
    if panel.observed.shape[1]:
        last = torch.maximum(at - 1 - panel.unknown[at], panel.begins[series])
        parts.append(held(panel.observed, after - 1, last))
    inputs = torch.cat([torch.cat(parts, dim=-1).flatten(1), panel.static[series]], dim=-1)
    return Rows(inputs, frame.targets(past, following))
