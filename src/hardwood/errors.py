"""The project's own exceptions and warnings; everything else is a built-in."""


class HardwoodError(Exception):
    """Base of the errors that only hardwood raises."""


class UnsupportedModelError(HardwoodError, ValueError):
    """The model is fine, but this function cannot treat it exactly; the message says what to do."""


class ModelFileError(HardwoodError, ValueError):
    """The arrays or the file do not describe a tree model."""


class CommunicationError(HardwoodError, RuntimeError):
    """Another worker of a job has died or does not answer."""


class HardwoodWarning(UserWarning):
    """Base of the warnings that only hardwood gives."""


class UnitWarning(HardwoodWarning):
    """A threat looks as if it were meant for columns in other units than those that it is given."""


class UndecidedWarning(HardwoodWarning):
    """Some rows are neither certified nor broken; they are reported as ``"unknown"``."""
