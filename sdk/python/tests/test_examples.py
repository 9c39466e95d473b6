"""The examples, run as by their readers."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

from tests.member import PATIENCE, Member

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class TestExamples(unittest.TestCase):
    def test_a_worker_and_a_client(self) -> None:
        member = Member()
        self.addCleanup(member.stop)
        environment = {**os.environ, "TROUPE_SERVER": member.url, "PYTHONPATH": ROOT}
        worker = subprocess.Popen([sys.executable, "examples/resize_worker.py"], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        for size, said in ((("800", "600"), "resize completed\ndescribe completed\ncompleted: 200 by 150 pixels\n"), (("0", "600"), "at least one pixel")):
            command = [sys.executable, "examples/start_task.py", *size]
            client = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
            self.assertIn(said, client.stdout.decode())
