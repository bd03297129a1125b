"""The one error tree, and what each error means to the outside.

::

    FismError
    |-- InputError (ValueError)             what was given cannot be used
    |   |-- DataError                       the rows or labels of a shard
    |   |-- ProblemError                    a loss, a set, an outer objective, or their fit to each other
    |   |-- StepError                       gamma, lambda, rounds, tolerance
    |   |-- MethodError                     the method does not fit the problem
    |   |-- ConfigError                     a configuration file, an option, a folder
    |   `-- CertificateError                a certificate, or the key to one
    |-- NumericalError (ArithmeticError)    a round gave numbers that are not finite
    |-- RefusedError                        a client is not let in, or put out
    |   |-- NotAllowedError                 this name has no place in the run
    |   |-- NotJoinedError                  no join is behind a stream; the client may join again
    |   |-- NameTakenError                  another client has joined under the name
    |   `-- MismatchError                   version, columns, loss or phase of the run do not fit
    |-- ContractError                       a message that the contract does not allow
    |-- StoppedError                        the run was ended before it was finished, or never began
    |   `-- StoreError                      the run's database cannot be read or written
    `-- InterruptedRunError                 the run was ended by a signal; its state is saved

    StepWarning (UserWarning)               the steps are not covered by the theory; the run goes on

Every message says what is wrong, where, and what to do about it.
"""

from typing import NamedTuple


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


class ConfigError(InputError):
    """A configuration file, an option or a folder cannot be used."""


class CertificateError(InputError):
    """A certificate, or the key to one, cannot be used."""


class RefusedError(FismError):
    """A client is not let in, or put out."""


class NotAllowedError(RefusedError):
    """This name has no place in the run."""


class NotJoinedError(RefusedError):
    """No join is behind a stream; the client may join again."""


class NameTakenError(RefusedError):
    """Another client has joined under the name."""


class MismatchError(RefusedError):
    """Version, columns, loss or phase of the run do not fit."""


class ContractError(FismError):
    """A message that the contract does not allow."""


class StoppedError(FismError):
    """The run was ended before it was finished, or never began."""


class StoreError(StoppedError):
    """The run's database cannot be read or written."""


class InterruptedRunError(FismError):
    """The run was ended by a signal; its state is saved."""


class Meaning(NamedTuple):
    """What an error is on the wire and to a shell."""

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
    """Return the meaning of the error's own class, or of the nearest one above it."""
    return next(MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS)
