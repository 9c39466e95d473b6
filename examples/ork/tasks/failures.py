import sys
import time

from ork import Context, TaskError


def flaky(ctx: Context):
    if ctx.attempt < 3:
        raise RuntimeError("not yet")
    return ctx.attempt


def broken():
    raise TaskError("no such customer", {"id": 7})


def slow():
    time.sleep(300)


def exits():
    print("nothing to do", file=sys.stderr)
    sys.exit(4)


def after(broken):
    return broken


def apart(flaky: int):
    return flaky * 10


def clean_up(everything: dict):
    return everything
