"""Original functions of `_thread`, `select` and `time`, which gevent or eventlet may replace.

`gevent.monkey.patch_all()`, `eventlet.monkey_patch()` and their like replace them by functions that
wait for a hub of greenlets. The server's own threads have none. A module that was imported before
the application still has the original functions; `original` returns them in any case.
"""

from __future__ import annotations

import _thread
import select
import time
from importlib.util import module_from_spec
from types import BuiltinFunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def original(module: ModuleType, name: str) -> Any:
    """Return a function of a C module as the interpreter has made it."""
    function = getattr(module, name, None)
    if type(function) is BuiltinFunctionType:
        return function
    # A second instance of the module, which nobody has changed.
    spec = module.__spec__
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    return getattr(fresh, name)


allocate_lock = original(_thread, "allocate_lock")
get_ident = original(_thread, "get_ident")
get_native_id = original(_thread, "get_native_id")
poll = original(select, "poll")
sleep = original(time, "sleep")
start_new_thread = original(_thread, "start_new_thread")
