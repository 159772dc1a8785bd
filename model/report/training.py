"""One training of TinyLight as a job: a point of a sweep, or a single training on a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from model.planning.settings import PlanConfig
from model.policy.file import Policy
from model.report.cells import file_hashes
from model.report.jobs import OnFraction
from model.report.settings import TinyLightSettings
from model.report.tasks import FEATURES_VERSION, LEARNING_VERSION, training_units
from model.search.config import TrainingConfig
from streetflow.control.clearance import require_clearance
from streetflow.control.features import feature_list, resolve_features
from streetflow.control.intersection import signalled_intersections
from streetflow.errors import FieldError, InputError, fields_from
from streetflow.files import write_whole
from streetflow.near import or_else
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.reader import read_roadnet

RESULT_VERSION = 1
OWN_FIELDS = ("network", "flow", "seed", "method", "features", "clearance", "replicas")
CONFIGS: dict[str, Any] = {"dqn": TrainingConfig, "planned": PlanConfig}
USUAL_FEATURES = {"dqn": "release", "planned": "all"}


@dataclass(frozen=True)
class Training:
    """What is trained, and how.

    Attributes:
        network, flow: on which traffic.
        clearance: what the lights show between two phases.
        settings: method, seed and all else.
        source: the file that these come from, for errors.
        out_name: the policy's file in the work folder; "": one named after the settings, with a result file beside it.
    """

    network: str
    flow: int
    clearance: str
    settings: TinyLightSettings
    source: str
    out_name: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any], source: str) -> Training:
        """From a field's name to its value: `OWN_FIELDS`, and those of the method's config.

        Raises:
            FieldError: an unknown name, an impossible value, or no network. Nothing is looked for.
        """
        own: dict[str, Any] = {"flow": 0, "clearance": "hold", "method": "dqn"}
        own |= {name: fields[name] for name in OWN_FIELDS if name in fields}
        for name, kind in (("network", str), ("flow", int), ("clearance", str)):
            if name not in own:
                raise FieldError(name, "is missing")
            if not isinstance(own[name], kind) or isinstance(own[name], bool):
                raise FieldError(name, f"must be {'a name' if kind is str else 'a whole number'}, is {own[name]!r}")
        require_clearance(own["clearance"])
        rest = {name: value for name, value in fields.items() if name not in OWN_FIELDS}
        chosen = {name: own[name] for name in ("method", "seed", "features", "replicas") if name in own}
        chosen.setdefault("features", USUAL_FEATURES.get(str(own["method"]), ""))
        try:
            settings = TinyLightSettings.model_validate(chosen | {"training": rest}, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            raise FieldError(str(first["loc"][0]), f"{first['msg']}, not {first['input']!r}") from None
        if settings.method == "planned" and settings.replicas != 1:
            raise FieldError("replicas", "the method planned has one seed")
        resolve_features(feature_list(settings.features))
        known = [*OWN_FIELDS, *CONFIGS[settings.method].__dataclass_fields__]
        for name in rest:
            if name not in known:
                raise FieldError(name, f"no field of the method {settings.method}{or_else(name, known)}")
        settings.config() if settings.method == "dqn" else settings.plan_config()
        return cls(own["network"], own["flow"], own["clearance"], settings, source)

    def __str__(self) -> str:
        return self.out_name or f"{self.network}, flow {self.flow}, seed {self.settings.seed} ({self.name})"

    @cached_property
    def name(self) -> str:
        """The same for the same fields, whatever else a sweep holds."""
        fields = {"flow": self.flow, "clearance": self.clearance} | self.settings.identity()
        return f"{self.network}-{sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:10]}"

    @cached_property
    def work_units(self) -> float:
        network = find_network(self.network)
        return training_units(self.settings, network, len(signalled_intersections(read_roadnet(network.roadnet_file))))

    def policy_file(self, work: Path) -> Path:
        return work / (self.out_name or f"{self.name}.policy.json")

    def result_file(self, work: Path) -> Path:
        return work / f"{self.name}.json"

    def checkpoints(self, work: Path) -> list[Path]:
        return [work / f"{self.out_name or self.name}.checkpoint"]

    def inputs(self) -> dict[str, Any]:
        own = {"network": self.network, "flow": self.flow, "clearance": self.clearance}
        versions = {"learning_version": LEARNING_VERSION, "features_version": FEATURES_VERSION}
        return own | self.settings.identity() | file_hashes(find_network(self.network), self.flow) | versions

    def result(self, work: Path) -> dict[str, Any] | None:
        """The result file's content where it was made from the same inputs. InputError for a foreign file."""
        file = self.result_file(work)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(file, "", f"not a sweep's result: {error}") from None
        if not isinstance(content, dict) or content.get("version") != RESULT_VERSION:
            raise InputError(file, "version", f"not a sweep's result of version {RESULT_VERSION}")
        return content if content["inputs"] == json.loads(json.dumps(self.inputs())) else None

    def is_done(self, work: Path) -> bool:
        return not self.out_name and self.result(work) is not None

    def run(self, work: Path, report: OnFraction) -> None:
        with fields_from(lambda field: (self.source, field)):
            policy = self._planned(work, report) if self.settings.method == "planned" else self._searched(work, report)
        if not self.out_name:
            content = {
                "version": RESULT_VERSION,
                "inputs": self.inputs(),
                "policy_sha256": policy.sha256,
                "parameters": [part.n_parameters for part in policy.intersections],
                "measured": [run.model_dump() for run in policy.measured],
            }
            write_whole(self.result_file(work), json.dumps(content, indent=1) + "\n")
        for checkpoint in self.checkpoints(work):
            checkpoint.unlink(missing_ok=True)

    def _searched(self, work: Path, report: OnFraction) -> Policy:
        from model.train.search_and_refine import Execution
        from model.train.train_policy import PolicySettings, train_policy

        settings, (checkpoint,) = self.settings, self.checkpoints(work)
        return train_policy(
            self.network,
            self.flow,
            settings.seed,
            self.policy_file(work),
            PolicySettings(settings.replicas, settings.features, self.clearance, settings.config()),
            execution=Execution(checkpoint, resume_from=checkpoint if checkpoint.is_file() else None),
            progress=_fraction(report),
        )

    def _planned(self, work: Path, report: OnFraction) -> Policy:
        from model.policy.file import save_policy
        from model.train.planned_policy import PlannedSettings, plan_policy

        settings, (checkpoint,), file = self.settings, self.checkpoints(work), self.policy_file(work)
        policy = plan_policy(
            find_network(self.network),
            self.flow,
            settings.seed,
            PlannedSettings(settings.features, self.clearance, settings.plan_config()),
            progress=_fraction(report),
            checkpoint=checkpoint,
            out_name=file.name,
        )
        save_policy(policy, file)
        return policy


def _fraction(report: OnFraction) -> Callable[[Any], None]:
    return lambda state: report(state.done_episodes / state.total_episodes)
