"""The log of a training for TensorBoard: the numbers of `model/train/log.py` without the alphas, while it trains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from model.train.search_and_refine import EpisodeRow
from streetflow.errors import FieldError
from streetflow.files import cannot_write, require_folder

SCALARS = ("average_travel_time_s", "loss", "epsilon", "learning_rate", "entropy_features", "entropy_layer2", "entropy_layer3")


class EventLog:
    """Event files in FOLDER/seed_S, one folder a replica. None as a folder: nothing is written.

    A step is an episode, refinement counted on from the search. A run that is resumed, or made again, replaces what the folder
    holds of the same seed.

    Raises:
        InputError: TensorBoard is missing, or the folder can't be written.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._writers, self._steps = folder, dict[int, Any](), Counter[int]()
        if folder is None:
            return
        require_folder(folder)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as fault:
            raise FieldError("tensorboard", "needs TensorBoard: pip install 'tinylight-hil[tensorboard]'") from fault
        self._open = SummaryWriter

    @property
    def rows(self) -> int:
        """How many have been written."""
        return self._steps.total()

    def add(self, rows: Iterable[EpisodeRow]) -> None:
        """Writes the next episodes' rows; what isn't a number is left out."""
        if self._folder is None:
            return
        with cannot_write(self._folder):
            for row in rows:
                if row.train_seed not in self._writers:
                    self._writers[row.train_seed] = self._open(str(self._folder / f"seed_{row.train_seed}"), purge_step=0)
                step = self._steps[row.train_seed]
                self._steps[row.train_seed] += 1
                for name in SCALARS:
                    if math.isfinite(value := getattr(row, name)):
                        self._writers[row.train_seed].add_scalar(name, value, step)
            for writer in self._writers.values():
                writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
