"""Functions of the user's that are called when a worker begins."""

from __future__ import annotations

from poorhttp.errors import ApplicationError, Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings


def call(settings: Settings) -> None:
    """Call the functions of `after_fork`, in their order.

    Raises:
        ApplicationError: one cannot be found, or has failed.
    """
    for name in settings.after_fork:
        where = f"{settings.place('after_fork')}: {name}"
        module, _, function = name.partition(":")
        if not (module and function):
            raise ApplicationError(f"{where}: write it as package.module:function")
        # When it is needed: few have hooks.
        import importlib

        try:
            found: object = importlib.import_module(module)
            for part in function.split("."):
                found = getattr(found, part)
            if not callable(found):
                raise TypeError(f"{name} is not a function")
            found()
        except Stopped:
            raise
        except BaseException as error:
            from poorhttp.targets.module import told

            raise ApplicationError(f"{where} has failed: {told(error)}") from error
