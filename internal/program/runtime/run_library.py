"""Calls ork_task_run of a shared library with a job's input. Python 3.8 or newer, standard library
only."""

import ctypes
import json
import os
import sys

MARK = "ORK_OUTPUT:"


class Failed(Exception):
    """An error reported by the library, or a missing or invalid result."""


def read_input():
    path = os.environ.get("ORK_INPUT_FILE")
    if path:
        with open(path, "rb") as file:
            return file.read()
    return os.fsencode(os.environ.get("ORK_INPUT_JSON") or "null")


def call(path):
    library = ctypes.CDLL(path)
    run, free = library.ork_task_run, library.ork_task_free
    run.restype, run.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    told = run(read_input())
    if not told:
        raise Failed("Task returned null pointer")
    try:
        return ctypes.string_at(told)
    finally:
        free(told)


def refuse(word):
    raise ValueError(word)


def output(told):
    """Returns a library's JSON result as one line. An unmarked object with only an error means a
    failure."""
    text = told.decode("utf-8", "replace").strip()
    marked = text.startswith(MARK)
    if marked:
        text = text[len(MARK):].strip()
    try:
        value = json.loads(text, parse_constant=refuse)
    except ValueError:
        raise Failed("the library returned what is no JSON: %.200s" % text) from None
    if not marked and isinstance(value, dict) and list(value) == ["error"]:
        raise Failed(value["error"] if isinstance(value["error"], str) else json.dumps(value["error"]))
    return text.replace("\n", " ").replace("\r", " ")


def main():
    path = os.environ["ORK_LIBRARY"]
    print("Loading library: " + path, flush=True)
    said = os.fdopen(os.dup(1), "wb")  # separates the library's own output from its result
    os.dup2(2, 1)
    try:
        line, code = MARK + output(call(path)), 0
    except (Failed, OSError, AttributeError) as error:
        line, code = "ORK_ERROR:" + json.dumps({"message": str(error)}), 1
    said.write(line.encode("utf-8") + b"\n")
    said.close()
    sys.exit(code)


if __name__ == "__main__":
    main()
