#!/usr/bin/env python3
"""A worker that needs nothing but files: object-store-worker.py COMMAND [ARGUMENT...]

It carries out the attempt whose spec.json the variable TASK_SPEC_PATH names. The command reads the attempt's input on stdin and prints the
output as JSON. What is written beside spec.json is heard: status.json, again and again, and output.json.
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import threading

HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_SECONDS", "10"))

spec_path = pathlib.Path(os.environ["TASK_SPEC_PATH"])
folder = spec_path.parent
spec = json.loads(spec_path.read_text())


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def write(name, value):
    """Nobody reads a half: the file is written under another name first."""
    draft = folder / f".{name}.{os.getpid()}"
    draft.write_text(json.dumps(value))
    draft.replace(folder / name)


started = now()


def say(status, **more):
    write("status.json", {"status": status, "attempt": spec["attempt"], "started_at": started, "heartbeat": now(), **more})


def beat(work, over):
    """Says that the work goes on, and ends it when nobody waits for it any longer."""
    while not over.wait(HEARTBEAT_SECONDS):
        say("running")
        if (folder / "cancel.json").exists():
            work.terminate()


def main():
    say("running")
    work = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    over = threading.Event()
    heart = threading.Thread(target=beat, args=(work, over))
    heart.start()
    printed, complaints = work.communicate(json.dumps(spec["input"]) + "\n")
    over.set()
    heart.join()
    try:
        if work.returncode != 0:
            raise RuntimeError(f"exit status {work.returncode}: {complaints.strip()[-500:]}")
        write("output.json", json.loads(printed) if printed.strip() else None)
    except (RuntimeError, ValueError) as failure:
        say("failed", finished_at=now(), error=str(failure))
        return 1
    say("success", finished_at=now())
    return 0


sys.exit(main())
