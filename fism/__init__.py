"""FISM: sites that cannot pool their data fit one convex model, and a private preference picks which.

The front door: every public name is here. Heavy imports wait until a name that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from fism_common import __version__ as __version__

if TYPE_CHECKING:
    from fism.methods import Method
    from fism.model import Model, load
    from fism.problem import Problem
    from fism.result import Result
    from fism.solving import solve
    from fism_client.data.shard import Shard
    from fism_common.errors import (
        DataError,
        FismError,
        InputError,
        MethodError,
        NumericalError,
        ProblemError,
        StepError,
        StepWarning,
    )
    from fism_common.problem.losses import (
        Absolute,
        BallDistance,
        CustomLoss,
        Hinge,
        Huber,
        Logistic,
        Loss,
        Quantile,
        Squared,
        SquaredHinge,
    )
    from fism_common.problem.sets import Ball, Box, ConstraintSet, L1Ball, Simplex
    from fism_server.algorithm.step_rules import PowerSteps, Schedule, StepReport
    from fism_server.problem.outer import (
        ElasticNet,
        GroupLasso,
        OuterObjective,
        Quadratic,
        SquaredDistance,
        SquaredNorm,
    )

# The same names as above: mypy reads those, Python these.
_HOMES = {
    "fism.methods": ("Method",),
    "fism.model": ("Model", "load"),
    "fism.problem": ("Problem",),
    "fism.result": ("Result",),
    "fism.solving": ("solve",),
    "fism_client.data.shard": ("Shard",),
    "fism_common.errors": (
        "DataError",
        "FismError",
        "InputError",
        "MethodError",
        "NumericalError",
        "ProblemError",
        "StepError",
        "StepWarning",
    ),
    "fism_common.problem.losses": (
        "Absolute",
        "BallDistance",
        "CustomLoss",
        "Hinge",
        "Huber",
        "Logistic",
        "Loss",
        "Quantile",
        "Squared",
        "SquaredHinge",
    ),
    "fism_common.problem.sets": ("Ball", "Box", "ConstraintSet", "L1Ball", "Simplex"),
    "fism_server.algorithm.step_rules": ("PowerSteps", "Schedule", "StepReport"),
    "fism_server.problem.outer": (
        "ElasticNet",
        "GroupLasso",
        "OuterObjective",
        "Quadratic",
        "SquaredDistance",
        "SquaredNorm",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Absolute",
    "Ball",
    "BallDistance",
    "Box",
    "ConstraintSet",
    "CustomLoss",
    "DataError",
    "ElasticNet",
    "FismError",
    "GroupLasso",
    "Hinge",
    "Huber",
    "InputError",
    "L1Ball",
    "Logistic",
    "Loss",
    "Method",
    "MethodError",
    "Model",
    "NumericalError",
    "OuterObjective",
    "PowerSteps",
    "Problem",
    "ProblemError",
    "Quadratic",
    "Quantile",
    "Result",
    "Schedule",
    "Shard",
    "Simplex",
    "Squared",
    "SquaredDistance",
    "SquaredHinge",
    "SquaredNorm",
    "StepError",
    "StepReport",
    "StepWarning",
    "load",
    "solve",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'fism' has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])
