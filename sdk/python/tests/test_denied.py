"""Workers with a token that no member accepts."""

from __future__ import annotations

import json
import logging
import unittest
import urllib.request

from tests.member import Member
from troupe_engine import Client, DeniedError, Worker


class DeniedTest(unittest.TestCase):
    def test_a_worker_without_a_right_token_ends(self) -> None:
        logging.getLogger("troupe").addHandler(logging.NullHandler())
        logging.getLogger("troupe").propagate = False
        member = Member("--token", "open sesame")
        self.addCleanup(member.stop)
        viewer = urllib.request.Request(member.url + "/v1/tokens", b'{"name": "v", "role": "viewer"}',
                                        {"Content-Type": "application/json", "Authorization": "Bearer open sesame"})
        with urllib.request.urlopen(viewer) as answer:
            of_viewer = json.load(answer)["secret"]
        for token, want in (("", "a bearer token is needed"), ("open says me", "the bearer token is wrong"), (of_viewer, "this needs the role worker")):
            worker = Worker(member.url, token=token)
            worker.handle("s", lambda job: None)
            with self.assertRaises(DeniedError) as raised:
                worker.run(signals=False)
            self.assertIn(want, str(raised.exception))
        with Client(member.url, token=" open sesame\n") as client:
            self.assertTrue(client.info())

    def test_a_token_that_cannot_be_sent_is_refused_and_not_told(self) -> None:
        for token in ("open\nsesame", "open sésame", "open\x00sesame"):
            with self.assertRaises(ValueError) as raised:
                Worker("http://127.0.0.1:1", token=token)
            self.assertNotIn("open", str(raised.exception))
