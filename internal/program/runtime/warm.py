"""Keeps an interpreter ready for jobs. On request over its standard input, a socket, it forks
itself for a job.

Before a job is known, it imports only the part of the standard library that the runner uses. The
task, its packages and our own packages are imported by the forked process, so none of them is older
than the job.

A forked process ends like an interpreter: it waits for its threads, runs the registered exit
functions, releases the modules of the task and their objects with finalizers, and flushes open
files. Only the state from before the fork is not torn down, which is the slowest part of an
interpreter's exit.
"""

import atexit
import asyncio  # noqa: F401 (the runner imports it when it needs it; here it is there already)
import gc
import importlib
import io
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback

ASKED = struct.Struct("!cI")  # kind of request, and number of following bytes
TOLD = struct.Struct("!cqq")
NUMBERS = struct.Struct("!QQ")  # number of the request, and mark of the family
MARKED = 10  # RLIMIT_LOCKS, which identifies families on Linux
HERE = os.path.dirname(os.path.abspath(__file__))


def serve(main):
    """Calls main in every process forked for a job. It never returns: the forking process ends with
    its standard input."""
    zygote = Zygote()
    zygote.tell(b"H", 0, 0)
    while True:
        ready, _, _ = select.select([zygote.control, zygote.wake], [], [])
        if zygote.wake in ready:
            zygote.look()
        if zygote.control in ready and zygote.obey():
            end(carried_out(main), zygote.modules)


def carried_out(main):
    """Returns the exit code of a process with this main function."""
    try:
        main()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def end(code, modules):
    """Ends the process like an interpreter, without tearing down the state from before the fork."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        write_out()
        for name in [name for name in sys.modules if name not in modules]:
            sys.modules.pop(name, None)
        gc.collect()
        write_out()  # output of finalizers
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def write_out():
    """Flushes open files, except those from before the fork, which hold no unwritten data."""
    for thing in gc.get_objects():
        if isinstance(thing, io.IOBase):
            try:
                thing.flush()
            except Exception:  # it is closed, or read-only
                pass


class Zygote:
    def __init__(self):
        self.control = socket.socket(fileno=os.dup(0))
        self.wake, self.woken = os.pipe()
        for end in (self.wake, self.woken):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.woken, warn_on_full_buffer=False)
        self.running, self.ended = set(), set()
        inherited = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        self.path = [p for p in sys.path if os.path.abspath(p or ".") not in inherited + [HERE]]
        self.modules = frozenset(sys.modules)
        gc.collect()
        gc.freeze()  # existing objects stay in shared memory as long as their reference counts do not change

    def tell(self, what, one, two):
        self.control.sendall(TOLD.pack(what, one, two))

    def look(self):
        """Reports processes that have ended. They are reaped only on request, so their ids stay
        valid until then."""
        os.read(self.wake, 4096)
        for pid in self.running - self.ended:
            status = ended(pid)
            if status is not None:
                self.ended.add(pid)
                self.tell(b"X", pid, status)

    def obey(self):
        """Handles a request. Returns True in a forked process."""
        head, fds = receive(self.control)
        if len(head) < ASKED.size:
            self.leave()
        what, size = ASKED.unpack(head)
        body = self.read(size)
        if what == b"R":
            self.release(int.from_bytes(body, "big"))
            return False
        return self.fork(body, fds)

    def read(self, size):
        parts = []
        while size > 0:
            part = self.control.recv(min(size, 1 << 20))
            if not part:
                self.leave()
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def leave(self):
        """The requesting process is gone, so the running jobs are no longer needed."""
        for pid in self.running:
            kill(pid)
        os._exit(0)

    def release(self, pid):
        if pid in self.running:
            self.running.discard(pid)
            self.ended.discard(pid)
            if WAITS:
                os.waitpid(pid, 0)

    def fork(self, body, fds):
        number, mark = NUMBERS.unpack_from(body)
        try:
            pid = os.fork()
        except OSError as error:
            pid = -1
            self.tell(b"E", number, error.errno)
        if pid == 0:
            self.become(mark, body[NUMBERS.size:].split(b"\0"), fds)
            return True
        for fd in fds:
            os.close(fd)
        if pid > 0:
            try:
                os.setpgid(pid, pid)  # both processes call it, so the order does not matter
            except OSError:
                pass
            self.running.add(pid)
            self.tell(b"F", number, pid)
        return False

    def become(self, mark, words, fds):
        """Gives a forked process the state it would have if it had been started for its job."""
        os.setpgid(0, 0)
        if mark:
            import resource

            resource.setrlimit(MARKED, (mark, resource.RLIM_INFINITY))
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.control.close()
        os.close(self.wake)
        os.close(self.woken)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        environment = dict(word.split(b"=", 1) for word in words[1:] if b"=" in word)
        os.environb.clear()
        os.environb.update(environment)
        time.tzset()
        os.chdir(words[0])
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(open(0, "rb", closefd=False), encoding=sys.stdin.encoding, errors=sys.stdin.errors)
        mine = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        sys.path[:] = list(dict.fromkeys(mine)) + [p for p in self.path if p not in mine]
        sys.argv[1:] = []
        importlib.invalidate_caches()


def receive(control):
    """Receives the head of a request, and the files sent with it."""
    head, told, _, _ = control.recvmsg(ASKED.size, socket.CMSG_SPACE(3 * 4))
    fds = []
    for level, kind, data in told:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += [int.from_bytes(data[i:i + 4], sys.byteorder) for i in range(0, len(data) - len(data) % 4, 4)]
    while 0 < len(head) < ASKED.size:
        more = control.recv(ASKED.size - len(head))
        if not more:
            break
        head += more
    return head, fds


WAITS = hasattr(os, "waitid")


def ended(pid):
    """Returns the exit status of a process; None while it is running."""
    if not WAITS:
        done, status = os.waitpid(pid, os.WNOHANG)
        return status if done else None
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    if info.si_code == os.CLD_EXITED:
        return info.si_status << 8
    return info.si_status | (0x80 if info.si_code == os.CLD_DUMPED else 0)


def kill(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
