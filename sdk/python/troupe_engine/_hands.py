"""Runs handlers: plain functions in threads, coroutines in one event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Callable, Optional

from ._claims import Claim, Claims
from ._params import LargeParams
from .job import Handler, close_streams

Ended = Callable[[Claim, Any, Optional[BaseException]], None]
"""Receives the result of a job: its output, or the raised exception."""


class Hands:
    """Calls handlers. An exception affects only its own job."""

    def __init__(self, claims: Claims, params: LargeParams, ended: Ended, leave: Callable[[Claim], None]) -> None:
        self._claims, self._params, self._ended, self._leave = claims, params, ended, leave

    def open(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._looper = threading.Thread(target=self._run, name="troupe-async", daemon=True)
        self._looper.start()

    def _run(self) -> None:
        """Runs the loop until it is stopped. A coroutine that raises SystemExit leaves the loop and
        affects only its own job."""
        while True:
            try:
                self._loop.run_forever()
                return
            except (SystemExit, KeyboardInterrupt):
                pass

    def close(self) -> None:
        """Stops without waiting for coroutines that ignore their cancellation."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._looper.join(1.0)
        if not self._looper.is_alive():
            self._loop.close()

    def carry_out(self, claim: Claim, handler: Handler) -> None:
        """Starts a job and returns at once."""
        if inspect.iscoroutinefunction(handler) and not claim.params_key:
            self._submit(claim, lambda: handler(claim.job))
        else:
            threading.Thread(target=self._in_thread, args=(claim, handler), name="troupe-job", daemon=True).start()

    def _in_thread(self, claim: Claim, handler: Handler) -> None:
        if not self._params.fetch(claim):
            self._leave(claim)
        elif inspect.iscoroutinefunction(handler):
            self._submit(claim, lambda: handler(claim.job))
        elif not self._claims.start(claim):
            self._leave(claim)
        else:
            self._call(claim, handler)

    def _call(self, claim: Claim, handler: Handler) -> None:
        try:
            result = handler(claim.job)
        except BaseException as e:  # including SystemExit and KeyboardInterrupt, which affect only the job
            close_streams(claim.job)
            self._ended(claim, None, e)
            return
        if inspect.isawaitable(result):
            self._submit(claim, lambda: result)
        else:
            close_streams(claim.job)
            self._ended(claim, result, None)

    def _submit(self, claim: Claim, begin: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(self._in_loop(claim, begin), self._loop)

    async def _in_loop(self, claim: Claim, begin: Callable[[], Any]) -> None:
        if not self._claims.start(claim):
            self._leave(claim)
            return
        task = asyncio.ensure_future(_awaited(begin))
        self._claims.on_cancel(claim, lambda: self._cancel(task))
        result, error = None, None
        try:
            result = await task
        except BaseException as e:
            error = e
        if claim.job._streams.written():  # storing the last values would block the loop
            await self._loop.run_in_executor(None, close_streams, claim.job)
        self._ended(claim, result, error)

    def _cancel(self, task: "asyncio.Future[Any]") -> None:
        self._loop.call_soon_threadsafe(task.cancel)


async def _awaited(begin: Callable[[], Any]) -> Any:
    return await begin()
