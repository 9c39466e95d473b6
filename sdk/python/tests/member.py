"""Test environment: a real member in a process of its own, and a relay in front of it that can be
cut."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from typing import List, Optional

PATIENCE = 60.0  # time limit in seconds for everything that should happen by itself


class Member:
    """A member on a new SQLite store."""

    def __init__(self, *flags: str) -> None:
        binary = os.environ.get("TROUPE_BINARY")
        if not binary:
            raise RuntimeError("TROUPE_BINARY names no troupe: run the tests by 'go test ./sdk', or build ./cmd/troupe and set it")
        self._dir = tempfile.mkdtemp(prefix="troupe-python-")
        self._log = open(os.path.join(self._dir, "member.log"), "wb")
        store = "sqlite:" + os.path.join(self._dir, "troupe.db")
        command = [binary, "serve", "--store", store, "--listen", "127.0.0.1:0", "--worker-ttl", "2s", *flags]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TROUPE_")}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, env=environment)
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode()  # Troupe serves URL from STORE
        if not said.startswith("Troupe serves "):
            with open(os.path.join(self._dir, "member.log"), encoding="utf-8") as log:
                raise RuntimeError(f"the member does not start: {said}{log.read()}")
        self.url = said.split()[2]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self._dir)


class Relay:
    """Relays connections to a port. Each of the first ones is cut off after the given number of
    bytes of its answers."""

    def __init__(self, port: int, cut_after: Optional[List[int]] = None, listen: Optional[int] = None) -> None:
        self._port = port
        self.connections = 0
        self.held = 0  # received but not forwarded
        self._holding = False
        self._cuts = list(cut_after or [])
        self._open: "set[socket.socket]" = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", listen or free_port()))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Silently stops forwarding."""
        self._holding = True

    def close(self) -> None:
        """Ends all connections, and refuses new ones."""
        _end(self._listener)
        with self._lock:
            for sock in self._open:
                _end(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                member = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open |= {client, member}
                most = self._cuts.pop(0) if self._cuts else sys.maxsize
            threading.Thread(target=self._pass, args=(client, member, sys.maxsize), daemon=True).start()
            threading.Thread(target=self._pass, args=(member, client, most), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket, most: int) -> None:
        try:
            while most > 0:
                data = source.recv(min(most, 4096))
                if not data:
                    break
                if self._holding:
                    self.held += 1
                    continue
                to.sendall(data)
                most -= len(data)
        except OSError:
            pass
        _end(source)
        _end(to)


def _end(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()


def refused() -> str:
    """Returns an address without a listener."""
    return f"http://127.0.0.1:{free_port()}"


def free_port() -> int:
    """Returns a port below the kernel's ephemeral range. In that range a client that dials a closed
    port may be assigned the same port and connect to itself."""
    for _ in range(100):
        port = random.randrange(20000, 32000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise RuntimeError("no port is free")
