"""The errors a user can meet. Each carries its exit code; the CLI prints its one line and exits with it."""


class JitauditError(Exception):
    """What is wrong, where, and what to do, in one line."""

    exit_code = 1


class RequestError(JitauditError):
    """The request cannot be served: a missing file, an unknown axis, an unreadable manifest."""

    exit_code = 2


class Interrupted(JitauditError):
    """The user stopped it before it had anything to show."""

    exit_code = 130


class SetupError(JitauditError):
    """This machine or environment cannot run the request: no Triton, no GPU, an unusable cache directory."""

    exit_code = 3


def error_of(exit_code: int) -> type[JitauditError]:
    """The class of the error that another process met."""
    return {error.exit_code: error for error in (SetupError, Interrupted)}.get(exit_code, RequestError)
