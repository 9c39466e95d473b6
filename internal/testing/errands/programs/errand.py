"""Functions of errands, which note what each attempt does."""

import os
import time
import urllib.request

from ork_sdk import CustomHttp


def note(what):
    with open("programs.log", "a") as log:
        log.write(f"{os.environ['EXECUTION_ID']} {what}\n")


def double(n: int) -> int:
    note("begins")
    time.sleep(0.1 + n % 5 / 10)
    note("ends")
    return 2 * n


def begin(n: int):
    note("begins")
    job = f"http://{os.environ['TROUPE_ERRANDS_OUTSIDE']}/jobs?by=program&id={os.environ['EXECUTION_ID']}"
    with urllib.request.urlopen(job, data=b"") as answer:
        if answer.status != 201:
            raise RuntimeError(f"answered {answer.status}")
    note("ends")
    return CustomHttp(url=job, completion_value="success", failure_value="failed")
