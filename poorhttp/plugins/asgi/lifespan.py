"""The lifespan of an ASGI application: its startup before the first request, and its shutdown."""

from __future__ import annotations

import asyncio

from poorhttp import logs
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.plugins.asgi.applications import Mounted
from poorhttp.targets.module import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.plugins.asgi.exchange import Message


class Lifespan:
    """Calls an application with the scope `lifespan`, in a task as long as the worker serves."""

    _text = ""  # the reason that the application has sent for the failure of its startup

    def __init__(self, mounted: Mounted, loop: asyncio.AbstractEventLoop) -> None:
        self.mounted = mounted
        #: Set in the scope by the application; each request gets a copy.
        self.state: dict[str, Any] = {}
        #: True: the application has completed its startup; False: it does not know the protocol.
        self._started: asyncio.Future[bool] = loop.create_future()
        #: The reason that the application has sent for the failure of its shutdown, or nothing.
        self._stopped: asyncio.Future[str] = loop.create_future()
        #: What the application has not received yet.
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self, *, is_required: bool, logs_failure: bool) -> None:
        """Wait until the application has started, or is known not to take part in the protocol.

        Raises:
            ApplicationError: its startup has failed, or it does not know what `is_required`; the
                cause is what it has raised, which is logged with `logs_failure`.
        """
        self._messages.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.create_task(self._run(is_required=is_required))
        try:
            if await self._started:
                self.mounted.state = self.state
        except ApplicationError as error:
            message = f"{self._name}: the startup failed"
            if error.__cause__ is None and len(self._text.splitlines()) > 1:
                logs.write("error", message, traceback=self._text)
            elif error.__cause__ is not None and logs_failure:
                logs.exception(message, error.__cause__)
            raise

    async def shutdown(self, timeout: float) -> None:
        """Tell the application that no more requests come, and wait until it has finished."""
        if self._task is None or self._task.done():
            return
        if self._started.cancel():
            # The server stops before the application has started.
            self._task.cancel()
        else:
            self._messages.put_nowait({"type": "lifespan.shutdown"})
        ends = self._stopped, self._task
        done, _ = await asyncio.wait(ends, timeout=timeout, return_when="FIRST_COMPLETED")
        if not done:
            logs.write("error", f"{self._name}: the shutdown takes longer than graceful_timeout")
        elif self._stopped.done() and self._stopped.result():
            logs.write("error", f"{self._name}: the shutdown failed: {self._stopped.result()}")
        await asyncio.wait((self._task,), timeout=0.1)
        self._task.cancel()

    @property
    def _name(self) -> str:
        return f"{self.mounted.target or 'the application'} (lifespan)"

    async def _run(self, *, is_required: bool) -> None:
        asgi = {"version": "3.0", "spec_version": "2.0"}
        scope = {"type": "lifespan", "asgi": asgi, "state": self.state}
        try:
            await self.mounted.application(scope, self._messages.get, self._send)
        except Stopped as error:
            self._started.set_exception(error)
        except BaseException as error:
            if self._started.done():
                failure = None if self._started.cancelled() else self._started.exception()
                if failure is not None:
                    # Some frameworks raise what they have sent.
                    failure.__cause__ = failure.__cause__ or error
                elif not isinstance(error, asyncio.CancelledError):
                    logs.exception(f"{self._name} failed", error)
            elif not self._messages.empty() and not is_required:
                # It has asked for nothing: it does not know the protocol.
                logs.write("debug", f"{self._name}: not used, because {describe(error)}")
                self._started.set_result(False)
            else:
                self._fail(describe(error), error)
        else:
            if is_required and not self._started.done():
                self._fail("it returned without lifespan.startup.complete")
            elif not self._started.done():
                self._started.set_result(False)

    def _fail(self, why: str, cause: BaseException | None = None) -> None:
        error = ApplicationError(f"{self._name}: the startup failed: {why}")
        error.__cause__ = cause
        self._started.set_exception(error)

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        text = str(message.get("message", ""))
        if kind in ("lifespan.startup.complete", "lifespan.startup.failed"):
            if self._started.done():
                raise RuntimeError(f"{kind} was sent when the startup was over")
            if kind == "lifespan.startup.complete":
                self._started.set_result(True)
                return
            # Some frameworks send the whole traceback.
            self._text = text.strip()
            self._fail((self._text.splitlines() or ["no reason is given"])[-1])
        elif kind in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
            if not self._stopped.done():
                failed = kind == "lifespan.shutdown.failed"
                self._stopped.set_result((text or "no reason is given") if failed else "")
        else:
            raise RuntimeError(f"{kind} is no message of the lifespan protocol")
