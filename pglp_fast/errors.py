"""What can go wrong, by kind. A message says what was wrong, where, and what to do."""


class PGLPError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidParameter(PGLPError, ValueError):
    """An option outside its range: epsilon, a seed, a strategy's name."""


class InvalidLocation(PGLPError, ValueError):
    """A map that cannot be built, or a cell that is not on it."""


class InvalidPolicy(PGLPError, ValueError):
    """Edges that are not a policy graph over the locations."""


class InvalidDomain(PGLPError, ValueError):
    """A domain that does not fit the locations, or a location outside it."""


class InvalidTransition(PGLPError, ValueError):
    """A mobility model that is not a Markov chain over the locations."""


class InvalidTable(PGLPError, ValueError):
    """A file or table that cannot be read as locations of users, or fixes that cannot be
    resampled."""


class MissingPackage(PGLPError, ImportError):
    """An optional package that is not installed; the message says how to get it."""


class InvalidEvidence(PGLPError, ValueError):
    """Releases that contradict each other under the model, or rows that are not evidence over
    the map."""


class BudgetExceeded(PGLPError):
    """The release would spend more than the user's budget; nothing was drawn."""


class InvalidState(PGLPError, ValueError):
    """A saved file that is foreign, damaged, or of another policy or model."""


class TooLarge(PGLPError, ValueError):
    """An exact answer that would not fit in memory or time."""


class UnsafeWarning(UserWarning):
    """What was asked for does not protect people: it is there for comparisons only."""
