"""The one error tree.

::

    FismError
    |-- InputError (ValueError)             what was given cannot be used
    |   |-- DataError                       the rows or labels of a shard
    |   |-- ProblemError                    a loss, a set, an outer objective, or their fit to each other
    |   |-- StepError                       gamma, lambda, rounds, tolerance
    |   `-- MethodError                     the method does not fit the problem
    `-- NumericalError (ArithmeticError)    a round gave numbers that are not finite

    StepWarning (UserWarning)               the steps are not covered by the theory; the run goes on

Every message says what is wrong, where, and what to do about it.
"""


class FismError(Exception):
    """Anything that this package raises on purpose."""


class InputError(FismError, ValueError):
    """What was given cannot be used."""


class DataError(InputError):
    """The rows or labels of a shard cannot be used."""


class ProblemError(InputError):
    """A loss, a set or an outer objective cannot be used, or they do not fit each other."""


class StepError(InputError):
    """Steps, rounds or tolerance cannot be used."""


class MethodError(InputError):
    """The method is unknown, or does not fit the problem."""


class NumericalError(FismError, ArithmeticError):
    """A round gave numbers that are not finite."""


class StepWarning(UserWarning):
    """No theorem covers these steps; the run goes on."""
