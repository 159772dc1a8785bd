"""What `tinylight train` shows of a finished policy."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from tinylight.console import say, show
from tinylight.json_file import write_json

if TYPE_CHECKING:
    from model.policy.file import Policy


def show_policy(policy: "Policy", out: Path, json_file: Path | None) -> None:
    """Its travel times by flow, and what each intersection keeps; also as JSON, to a file."""
    from model.policy.file import CHIP_INPUTS

    table = Table(title=f"{out}: policy {policy.sha256[:12]}", title_justify="left")
    for heading in ("flow", "float: travel time s", "integers: travel time s"):
        table.add_column(heading, justify="right")
    for row in policy.measured:
        table.add_row(str(row.flow), f"{row.float_average_travel_time_s:.3f}", f"{row.integer_average_travel_time_s:.3f}")
    show(table)
    for part in policy.intersections:
        kept = " + ".join(f"{feature.name} ({feature.width})" for feature in part.features)
        say(f"{part.id}: {kept} -> {part.hidden[0]} -> {part.hidden[1]} -> {len(part.phases)}, {part.n_parameters} parameters")
        if part.n_inputs > CHIP_INPUTS:
            say(
                f"{part.id}: {part.n_inputs} values, more than the {CHIP_INPUTS} that a request to the chip carries; "
                "--max-parameters keeps to features that fit",
                style="yellow",
            )
    if json_file is not None:
        write_json(policy.model_dump(mode="json", include={"sha256", "network", "provenance", "measured"}), json_file)
