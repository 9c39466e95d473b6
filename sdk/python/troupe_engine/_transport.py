"""Sends requests to members: several addresses, reused connections, and retries."""

from __future__ import annotations

import http.client
import io
import json
import os
import random
import re
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from decimal import Decimal
from typing import Any, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from .errors import ProblemError, TroupeError, UnreachableError, refusal

Part = TypeVar("Part")

Servers = Union[str, Sequence[str], None]

DEFAULT_SERVER = "http://127.0.0.1:8070"
CONNECT_TIME = 5.0  # seconds until another address is tried
MOST_IDLE = 16  # maximal idle connections per address
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

_FAILURES = (OSError, http.client.HTTPException)


class BrokenOff(TroupeError):
    """The request was aborted by this program."""


def encode(value: Any) -> bytes:
    """Returns the encoded JSON. Decimals keep all their digits; values that are not JSON (such as
    NaN) are rejected."""
    decimals: Dict[str, str] = {}
    mark = ""

    def mark_decimal(found: Any) -> str:
        nonlocal mark
        if not isinstance(found, Decimal):
            raise TypeError(f"a value of type {type(found).__name__} is no JSON")
        if not found.is_finite():
            raise ValueError(f"{found} is no JSON")
        mark = mark or uuid.uuid4().hex
        decimals[f'"{mark}{len(decimals)}"'] = str(found)
        return f"{mark}{len(decimals) - 1}"

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=mark_decimal)
    if decimals:
        text = re.sub(f'"{mark}[0-9]+"', lambda found: decimals[found.group()], text)
    return text.encode("utf-8")


def part(answer: Any, name: str, kind: "type[Part]") -> "Part":
    """Returns a part that every member's answer has. Another server's answer without it counts as a
    temporary error."""
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, kind):
        raise TroupeError(f"this is not what a member answers, there is no {name} in it: {str(answer)[:200]}")
    return found


def segment(text: str) -> str:
    """Returns an escaped part of a path."""
    return urllib.parse.quote(text, safe="")


class Backoff:
    """Pauses between tries: increasing, with jitter, and not shorter than requested by the member.
    """

    def __init__(self) -> None:
        self._next = 0.0

    @property
    def fresh(self) -> bool:
        return self._next == 0.0

    def pause(self, error: Optional[BaseException] = None) -> float:
        self._next = min(max(2 * self._next, FIRST_PAUSE), LONGEST_PAUSE)
        pause = self._next * (0.5 + random.random() / 2)
        asked = error.retry_after if isinstance(error, ProblemError) else 0.0
        return max(pause, min(asked, 60.0))


class Breaker:
    """Aborts a request from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Optional[http.client.HTTPConnection] = None
        self.broken = False

    def hold(self, connection: Optional[http.client.HTTPConnection]) -> None:
        with self._lock:
            if self.broken and connection is not None:
                raise BrokenOff("the request is not wanted any longer")
            self._connection = connection

    def break_off(self) -> None:
        with self._lock:
            self.broken = True
            if self._connection is not None and self._connection.sock is not None:
                _shut(self._connection.sock)


class _Within(http.client.HTTPResponse):
    """An answer with a deadline, however slowly it arrives."""

    def __init__(self, sock: socket.socket, end: float, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Timed(sock, end))


class _Timed(io.RawIOBase):
    """Reads from a connection until a deadline."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self._end = sock, end
        self._raw = sock.makefile("rb", buffering=0)  # keeps the connection open

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self._end - time.monotonic()
        if left <= 0:
            raise socket.timeout("the answer takes too long")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        self._raw.close()
        super().close()


def _shut(sock: socket.socket) -> None:
    """Shuts a connection down below TLS, so that a thread reading from it returns."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


class Address:
    """One address of a member, with its idle connections."""

    def __init__(self, url: str, context: Optional[ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url.strip().rstrip("/"))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a member: write http://host:port")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.base = parts.path[:-3] if parts.path.endswith("/v1") else parts.path
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._context = context
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []
        self._closed = False  # connections returned later are closed

    def open(self, patience: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect(min(patience, CONNECT_TIME))
            if _alive(connection):
                return connection
            connection.close()

    def _connect(self, patience: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._secure:
            context = self._context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=patience, context=context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=patience)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and not self._closed and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()


def _alive(connection: http.client.HTTPConnection) -> bool:
    """Returns whether the other side has kept an idle connection open."""
    sock = connection.sock
    if sock is None:
        return False
    try:
        sock.settimeout(0)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # end of file or unexpected data
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def addresses(servers: Servers, context: Optional[ssl.SSLContext]) -> List[Address]:
    """Parses one address, several separated by commas, or a list; default TROUPE_SERVER."""
    if servers is None:
        servers = os.environ.get("TROUPE_SERVER") or DEFAULT_SERVER
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    found = [Address(text, context) for text in texts]
    if not found:
        raise ValueError("there is no address of a member: write http://host:port")
    return found


def _header(token: Optional[str]) -> str:
    """Returns the header for a token, without a line break at its end. Errors do not contain the
    token."""
    token = (token or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the token has a character that no header may have: letters, digits and signs of ASCII may stand in it")
    return token


class Transport:
    """Sends requests to the address that answered last, and to the next one if it does not answer
    any longer.

    Every request may be retried: those with an effect carry a key or a token that makes it happen
    once.
    """

    def __init__(self, servers: Servers, token: Optional[str], *, timeout: float, context: Optional[ssl.SSLContext], decimals: bool = False) -> None:
        self._parse_float = Decimal if decimals else None
        self.addresses = addresses(servers, context)
        self.timeout = timeout
        self._token = _header(token if token is not None else os.environ.get("TROUPE_TOKEN"))
        self._at = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        for address in self.addresses:
            address.close()

    def call(self, method: str, path: str, body: Optional[bytes] = None, *, headers: Optional[Mapping[str, str]] = None,
             wait: float = 0.0, timeout: Optional[float] = None, breaker: Optional[Breaker] = None) -> Any:
        """Tries each address once until one accepts the request, and returns its answer. A timeout
        limits the whole answer. Without one, only silence is limited, and an answer may take any
        time."""
        errors: List[str] = []
        busy: Optional[ProblemError] = None
        for _ in self.addresses:
            at, address = self._current()
            try:
                return self._once(address, method, path, body, headers or {}, (timeout or self.timeout) + wait, timeout is not None, breaker)
            except ProblemError as e:
                if not e.temporary:
                    raise
                busy = e
            except _FAILURES as e:
                if breaker is not None and breaker.broken:
                    raise BrokenOff("the request was broken off") from e
                errors.append(f"{address.url} ({e or type(e).__name__})")
            self._leave(at)
        if busy is not None:
            raise busy
        raise UnreachableError(f"no member answers at {', '.join(errors)}: is one running there?")

    def _current(self) -> "tuple[int, Address]":
        with self._lock:
            return self._at, self.addresses[self._at]

    def _leave(self, at: int) -> None:
        """Makes the next request use the next address, unless a concurrent one has already
        switched."""
        with self._lock:
            if self._at == at:
                self._at = (at + 1) % len(self.addresses)

    def _once(self, address: Address, method: str, path: str, body: Optional[bytes], headers: Mapping[str, str],
              silence: float, whole: bool, breaker: Optional[Breaker]) -> Any:
        end = time.monotonic() + silence
        connection = address.open(silence)
        try:
            if breaker is not None:
                breaker.hold(connection)
            connection.response_class = (lambda sock, *args, **named: _Within(sock, end, *args, **named)) if whole else http.client.HTTPResponse  # type: ignore
            response = self._send(connection, address, method, path, body, headers, silence)
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        finally:
            if breaker is not None:
                breaker.hold(None)
        if response.will_close:
            connection.close()
        else:
            address.keep(connection)
        if response.status >= 300:
            raise refusal(response.status, answer, response.getheader("Retry-After"))
        if not answer:
            return None
        try:
            return self.parse(answer)
        except ValueError as e:
            raise TroupeError(f"{address.url} does not answer as a member does: {answer[:200]!r}") from e

    def parse(self, text: Union[str, bytes]) -> Any:
        """Parses a JSON text sent by a member."""
        return json.loads(text, parse_float=self._parse_float)

    def _send(self, connection: http.client.HTTPConnection, address: Address, method: str, path: str, body: Optional[bytes],
              headers: Mapping[str, str], silence: float) -> http.client.HTTPResponse:
        sent: Dict[str, str] = {"Accept": "application/json", **headers}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        if self._token:
            sent["Authorization"] = "Bearer " + self._token
        connection.sock.settimeout(silence)
        connection.request(method, address.base + "/v1" + path, body, sent)
        return connection.getresponse()

    def stream(self, path: str, headers: Mapping[str, str], silence: float) -> "Stream":
        """Opens a streamed answer from one address."""
        at, address = self._current()
        connection: Optional[http.client.HTTPConnection] = None
        try:
            connection = address.open(silence)
            response = self._send(connection, address, "GET", path, None, headers, silence)
            if response.status >= 300:
                raise refusal(response.status, response.read(), response.getheader("Retry-After"))
        except BaseException as e:
            if connection is not None:
                connection.close()
            if isinstance(e, ProblemError) and e.temporary or isinstance(e, _FAILURES):
                self._leave(at)
            if isinstance(e, _FAILURES):
                raise UnreachableError(f"no member answers at {address.url} ({e})") from e
            raise
        return Stream(connection, response)


class Stream:
    """A streamed answer."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response

    def line(self) -> bytes:
        """Returns the next line with its line break. An incomplete line is discarded."""
        try:
            line = self._response.readline()
        except _FAILURES + (ValueError,) as e:
            raise UnreachableError(f"the stream broke off ({e or type(e).__name__})") from e
        if not line.endswith(b"\n"):
            raise UnreachableError("the stream broke off")
        return line

    def close(self) -> None:
        self._connection.close()
        self._response.close()

