"""Start and exit of a forked worker process."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from poorhttp import logs
from poorhttp._core import note_fd, set_process_title
from poorhttp.config.settings import Settings
from poorhttp.errors import Failure, Stopped, printable
from poorhttp.net.listener import close_others
from poorhttp.process.control_channel import HERE, SERVING, ControlChannel, report_failure
from poorhttp.process.fork import fork, set_parent_death_signal
from poorhttp.process.signals import SIGNALS, ignore_at_exit, install_ignored, signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import GRACE, StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeAlias

    #: What a process does: its label in the log, and a function that may return what follows.
    Process: TypeAlias = tuple[str, Callable[[StopSignals], "Process | None"]]


def fork_child(
    run: Callable[[int, StopSignals], Process | None], label: str, service: Service
) -> tuple[int, ControlChannel]:
    """Fork a child for `run_child`; return its process ID, and the main process's end of a channel.

    `run` gets the descriptor of the other end. An OSError: the child cannot be forked.
    """
    channel = ControlChannel()
    parent, fd = os.getpid(), channel.child_fd
    try:
        pid = fork(lambda: run_child(lambda signals: run(fd, signals), parent, label, service))
    except OSError:
        channel.close()
        raise
    finally:
        channel.close_child_end()
    return pid, channel


def worker(service: Service, context: WorkerContext, promoted: Process | None = None) -> Process:
    """Return a worker, as `run_child` runs it.

    With `promoted`, it reports itself, as another process has forked it, and goes on as `promoted`
    if the main process promotes it.
    """

    def run(signals: StopSignals) -> Process | None:
        if promoted is not None:
            write(context, HERE)
        with reported(context.channel):
            return serve(signals)

    def serve(signals: StopSignals) -> Process | None:
        # The process that has forked it receives it only for this one.
        note_fd(context.channel)
        service.begin(signals)
        service.load()
        call_start_hooks(service.settings, context.index)
        set_parent_death_signal(signals.parent, signals.timeout + 2 * GRACE)

        if service.serve(lambda: write(context, SERVING), signals, context):
            # Until `promoted` handles them; handlers for earlier signals have run after this.
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            if not signals.stopping:
                return promoted
        return None

    return f"worker {context.index + 1}", run


@contextmanager
def reported(channel: int) -> Iterator[None]:
    """Tell the main process over `channel` why this process cannot go on; the exception stays."""
    try:
        yield
    except Stopped:
        raise
    except BaseException as error:
        from poorhttp.targets.module import describe  # needed only here

        # A message of the server names the place already.
        report_failure(channel, str(error) if isinstance(error, Failure) else describe(error))
        raise


def write(context: WorkerContext, message: bytes) -> None:
    """Send a message to the main process; `Stopped` if it does not want this worker any more."""
    try:
        os.write(context.channel, message)
    except BrokenPipeError:
        raise Stopped from None


def call_start_hooks(settings: Settings, index: int) -> None:
    """Call `after_fork` and `worker_start` in the worker `index`; errors as of `functions.call`."""
    if settings.after_fork or settings.hook_worker_start:
        # Needed only here.
        from poorhttp.worker.hooks import functions
        from poorhttp.worker.hooks.arguments import WorkerInfo

        functions.call(settings, "after_fork")
        worker = WorkerInfo(index + 1, os.getpid(), settings.service)
        functions.call(settings, "hook_worker_start", worker)


def run_child(
    run: Callable[[StopSignals], Process | None],
    parent: int,
    label: str,
    service: Service,
    others: Sequence[Service] = (),
) -> NoReturn:
    """Call `run` in this child of the main process, and exit with the resulting code.

    A failure is printed on standard error until the server as a whole serves, and logged in the
    error log from then on. `others`: services whose listeners are kept, in place of `service`.

    If `run` returns a `Process`, with `SIGNALS` blocked, that begins from here: in this process, or
    in a fork of it. So the stack does not grow with each process that was forked from another.
    """
    code = 1
    ignore_at_exit()
    process: Process | None = label, run
    try:
        while process is not None:
            own = os.getpid()
            label, run = process
            with StopSignals(service.settings, supervised=True, parent=parent) as signals:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                service.change_folder()
                service.privileges.drop()
                # After the change of the user, which resets the parent-death signal (prctl(2)).
                set_parent_death_signal(parent, service.settings.graceful_timeout + 2 * GRACE)
                kept = others or (service,)
                close_others(listener for each in kept for listener in each.listeners)
                name = service.settings.service
                if name.startswith("/"):
                    # No service of the configuration: there is one process of it of a plug-in.
                    name, label = "", name[1:]
                full = f"{name} {label}".strip()
                logs.begin_process(service.settings, full, configure=not service.loaded)
                if title := service.settings.proc_name:
                    text = f"{title}: {label}" + (f" [{name}]" if name else "")
                    set_process_title(text, label, requests=title.requests)
                process = run(signals)
        code = 0
    except Stopped:
        code = 0
    except Failure as failure:
        code = failure.exit_code
        if service.serving:
            if not service.start_errors_muted:
                logs.write("error", f"{label} cannot begin: {failure}")
        else:
            logs.start_failure(failure)
            print(f"poorhttp: {printable(str(failure))}", file=sys.stderr)
        if service.settings.log_level == "debug":
            sys.excepthook(type(failure), failure, failure.__traceback__)
    except BaseException as error:
        logs.exception("a worker failed", error)
    finally:
        if os.getpid() != own:
            # A process that the application has forked, and that returned here: it must not run
            # the shutdown of its parent.
            os._exit(code)
        # The stack still refers to the service: the application is released before the exit.
        service.application = None
        del service.routes
        exit_process(code, service.settings.graceful_timeout, service.end_threads)


def exit_process(
    code: int, timeout: float, end_threads: Callable[[int], None] | None = None
) -> NoReturn:
    """Exit by Python's complete shutdown: threads are joined, `atexit` handlers run.

    The stack is not unwound, because its outer frames are those of the main process. A shutdown
    that takes longer than `timeout` seconds is cut short, with all stacks in the error log. If the
    main process has stopped this one, its SIGKILL comes earlier, because it counts from that time.
    `end_threads` has no thread joined for as long; it gets the exit code.
    """
    import faulthandler

    for number in SIGNALS:
        # Python handlers could raise during the shutdown.
        install_ignored(number)
    # Objects that were frozen to save memory are collected as at any other exit.
    gc.unfreeze()
    # Later messages are written at once.
    logs.close()
    for stream in (logs.error_log.stream, sys.stderr):
        # The log may be no file, and notebooks replace standard error.
        with suppress(Exception):
            faulthandler.dump_traceback_later(timeout + 3 * GRACE, exit=True, file=stream)
            break
    if end_threads is not None:
        end_threads(code)
    try:
        _py_exit(code)
    except Exception:
        # Python was built without ctypes: objects are not freed.
        threading: Any = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
        run_exit_functions(code)
    finally:
        os._exit(code)


def run_exit_functions(code: int) -> NoReturn:
    """End the process as Python's shutdown does, but for threads and objects."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _py_exit(code: int) -> None:
    """Shut Python down and end the process, as SystemExit does at the bottom of the stack.

    Calls the C function `Py_Exit`. Not from the extension: its thread-local objects are freed when
    Python is already finalized, and would still call it. Not with all of `ctypes`, whose import
    allocates memory that is writable and executable (systemd: MemoryDenyWriteExecute=).
    """
    import _ctypes

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
        _restype_ = None

    Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "Py_Exit"))(code)  # type: ignore[arg-type]
