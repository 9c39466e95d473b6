"""Keeps an interpreter ready for jobs: it forks itself for each of them when it is asked to on its standard input, a socket.

What is imported here, before a job is known, is the standard library as far as the runner uses it. What a task is made of, the packages that it
uses and those of ours included, is imported by the process that was forked for it, so none of it is older than the job.

A process that was forked ends as an interpreter does: it waits for its threads, does what was registered for the end, lets go of what the task has
imported, objects with finalizers among it, and writes out files that are still open. Only what was there before the fork is not taken apart, which
is what the end of an interpreter takes longest for.
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

ASKED = struct.Struct("!cI")  # what for, and how many bytes follow
TOLD = struct.Struct("!cqq")
NUMBERS = struct.Struct("!QQ")  # of the request; the mark of the family
MARKED = 10  # RLIMIT_LOCKS: what families are known by on Linux
HERE = os.path.dirname(os.path.abspath(__file__))


def serve(main):
    """Calls main in every process that is forked for a job. It never returns: the one that forks ends with its standard input."""
    zygote = Zygote()
    zygote.tell(b"H", 0, 0)
    while True:
        ready, _, _ = select.select([zygote.control, zygote.wake], [], [])
        if zygote.wake in ready:
            zygote.look()
        if zygote.control in ready and zygote.obey():
            end(carried_out(main), zygote.modules)


def carried_out(main):
    """The exit code of a process whose main function this is."""
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
    """Ends the process as an interpreter ends, but for what was there before the fork."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        write_out()
        for name in [name for name in sys.modules if name not in modules]:
            sys.modules.pop(name, None)
        gc.collect()
        write_out()  # what finalizers have written
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def write_out():
    """Writes out files that are open. Those that were there before the fork are not looked at: nothing of them waits."""
    for thing in gc.get_objects():
        if isinstance(thing, io.IOBase):
            try:
                thing.flush()
            except Exception:  # it is closed, or not for writing
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
        gc.freeze()  # what is there by now is shared by all, and stays so as long as nobody counts it

    def tell(self, what, one, two):
        self.control.sendall(TOLD.pack(what, one, two))

    def look(self):
        """Tells of processes that have ended. Their ids are theirs until somebody has asked for them to be let go."""
        os.read(self.wake, 4096)
        for pid in self.running - self.ended:
            status = ended(pid)
            if status is not None:
                self.ended.add(pid)
                self.tell(b"X", pid, status)

    def obey(self):
        """True in a process that was forked."""
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
        """Who asks is gone, and whatever is under way nobody waits for."""
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
                os.setpgid(pid, pid)  # both do, so that it is done whoever comes first
            except OSError:
                pass
            self.running.add(pid)
            self.tell(b"F", number, pid)
        return False

    def become(self, mark, words, fds):
        """Makes a process that was forked what it were if it had been started for its job."""
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
    """The head of a request, and the files that came with it."""
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
    """How a process has ended, as the system says it; None while it goes on."""
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
