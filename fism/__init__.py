"""FISM: sites that cannot pool their data fit one convex model, and a private preference selects it.

Every public name is in the ``__all__`` of one of the modules below. Heavy modules are
imported only when a name that needs them is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from fism_common import __version__ as __version__

if TYPE_CHECKING:
    from fism.methods import *
    from fism.model import *
    from fism.pooled import *
    from fism.problem import *
    from fism.result import *
    from fism.sharding import *
    from fism.solving import *
    from fism_client.data.shard import *
    from fism_common.data.source import *
    from fism_common.errors import *
    from fism_common.problem.custom import *
    from fism_common.problem.losses import *
    from fism_common.problem.sets import *
    from fism_server.algorithm.step_rules import *
    from fism_server.problem.outer import *
    from fism_server.problem.plan import *
else:
    # Light modules first: a name is looked up in this order.
    _HOMES = (
        "fism_common.errors",
        "fism_common.problem.losses",
        "fism_common.problem.custom",
        "fism_common.problem.sets",
        "fism_server.problem.outer",
        "fism_server.algorithm.step_rules",
        "fism.problem",
        "fism.result",
        "fism_client.data.shard",
        "fism_common.data.source",
        "fism_server.problem.plan",
        "fism.model",
        "fism.methods",
        "fism.solving",
        "fism.pooled",
        "fism.sharding",
    )

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return sorted({name for home in _HOMES for name in import_module(home).__all__})
        for home in () if name.startswith("_") else _HOMES:
            module = import_module(home)
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
        raise AttributeError(f"module 'fism' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
