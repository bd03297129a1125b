"""The error tree, and the gRPC status and exit code of each error.

::

    FismError
    |-- InputError (ValueError)             invalid input
    |   |-- DataError                       the rows or labels of a shard
    |   |-- ProblemError                    a loss, a set or an outer objective, or their combination
    |   |-- StepError                       gamma, lambda, rounds, tolerance
    |   |-- MethodError                     the method does not fit the problem
    |   |-- ConfigError                     a configuration file, an option, a folder
    |   `-- CertificateError                a certificate or its private key
    |-- NumericalError (ArithmeticError)    a round produced numbers that are not finite
    |-- RefusedError                        a client is not admitted, or is excluded
    |   |-- NotAllowedError                 this client may not take part in the run
    |   |-- NotJoinedError                  a stream without a valid join; the client may join again
    |   |-- NameTakenError                  another client has joined with this name
    |   `-- MismatchError                   version, columns, loss or phase of the run do not match
    |-- ContractError                       a message that the protocol does not allow
    |-- StoppedError                        the run stopped before it finished, or never began
    |   `-- StoreError                      the run's database cannot be read or written
    `-- InterruptedRunError                 a signal ended the run; its state is saved

    StepWarning (UserWarning)               no theorem covers these steps; the run continues

Every message says what is wrong, where, and what to do about it.
"""

from typing import NamedTuple

__all__ = [
    "DataError",
    "FismError",
    "InputError",
    "MethodError",
    "NumericalError",
    "ProblemError",
    "StepError",
    "StepWarning",
]


class FismError(Exception):
    """The base class of all errors that this package raises."""


class InputError(FismError, ValueError):
    """The input is invalid."""


class DataError(InputError):
    """The rows or labels of a shard cannot be used."""


class ProblemError(InputError):
    """A loss, a set or an outer objective cannot be used, or they do not fit together."""


class StepError(InputError):
    """Steps, rounds or tolerance cannot be used."""


class MethodError(InputError):
    """The method is unknown, or does not fit the problem."""


class NumericalError(FismError, ArithmeticError):
    """A round produced numbers that are not finite."""


class StepWarning(UserWarning):
    """No theorem covers these steps; the run continues."""


class ConfigError(InputError):
    """A configuration file, an option or a folder cannot be used."""


class CertificateError(InputError):
    """A certificate or its private key cannot be used."""


class RefusedError(FismError):
    """A client is not admitted, or is excluded."""


class NotAllowedError(RefusedError):
    """This client may not take part in the run."""


class NotJoinedError(RefusedError):
    """A stream without a valid join; the client may join again."""


class NameTakenError(RefusedError):
    """Another client has joined with this name."""


class MismatchError(RefusedError):
    """Version, columns, loss or phase of the run do not match."""


class ContractError(FismError):
    """A message that the protocol does not allow."""


class StoppedError(FismError):
    """The run stopped before it finished, or never began."""


class StoreError(StoppedError):
    """The run's database cannot be read or written."""


class InterruptedRunError(FismError):
    """A signal ended the run; its state is saved."""


class Meaning(NamedTuple):
    """How an error appears on the wire and to a shell."""

    status: str
    """The name of a gRPC status code."""
    exit_code: int


MEANINGS: dict[type[FismError], Meaning] = {
    FismError: Meaning("INTERNAL", 1),
    InputError: Meaning("INVALID_ARGUMENT", 2),
    NumericalError: Meaning("INTERNAL", 4),
    RefusedError: Meaning("FAILED_PRECONDITION", 3),
    NotAllowedError: Meaning("PERMISSION_DENIED", 3),
    NotJoinedError: Meaning("UNAUTHENTICATED", 3),
    NameTakenError: Meaning("ALREADY_EXISTS", 3),
    ContractError: Meaning("INVALID_ARGUMENT", 3),
    StoppedError: Meaning("ABORTED", 4),
    InterruptedRunError: Meaning("CANCELLED", 130),
}


def meaning(error: FismError) -> Meaning:
    """Return the meaning of the error's class, or of its nearest base class that has one."""
    return next(MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS)
