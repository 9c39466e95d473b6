"""The client against a real member."""

from __future__ import annotations

import threading
import unittest
from typing import Any, List

from tests.member import PATIENCE, Member, Relay, refused
from troupe_engine import Client, ConflictError, DeniedError, InvalidError, NotFoundError, ProblemError, TroupeError, UnreachableError

EVENT = """
start: ask
nodes:
  ask: {kind: wait_event, params: {signal_key: answer}, post: {output_key: said}}
"""

TWO = EVENT + """
  more: {kind: timer, params: {delay_ms: 1}}
edges:
  - {from: ask, action: default, to: more}
"""

AFTER = """
start: begin
nodes:
  begin: {kind: timer, params: {delay_ms: 1}}
  ask: {kind: wait_event, params: {signal_key: answer}}
edges:
  - {from: begin, action: default, to: ask}
"""

# One step per letter, so that there are many events.
LOOP = """
start: n0
nodes:
""" + "".join(f"  n{i}: {{kind: timer, params: {{delay_ms: 1}}}}\n" for i in range(12)) + "edges:\n" + "".join(
    f"  - {{from: n{i}, action: default, to: n{i + 1}}}\n" for i in range(11))

member: Member


def setUpModule() -> None:
    global member
    member = Member()
    unittest.addModuleCleanup(member.stop)


class TestClient(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client(member.url)
        self.addCleanup(self.client.close)

    def test_a_flow_is_published_read_and_listed(self) -> None:
        published = self.client.publish("published", EVENT)
        self.assertTrue(published["created"])
        self.assertFalse(self.client.publish("published", EVENT)["created"])
        self.assertEqual("published", self.client.flow("published")["slug"])
        self.assertIn("published", [f["slug"] for f in self.client.flows()])
        self.assertEqual([1], [v["number"] for v in self.client.versions("published")])
        definition = self.client.version("published")["definition"]
        self.assertEqual("ask", definition["start"])
        self.assertFalse(self.client.publish("published", definition)["created"])

    def test_a_key_starts_one_task(self) -> None:
        self.client.publish("keyed", EVENT)
        first = self.client.start("keyed", {"n": 1}, key="k", labels={"customer": "7"})
        again = self.client.start("keyed", {"n": 1}, key="k", labels={"customer": "7"})
        self.assertEqual((first["id"], True, False), (again["id"], first["created"], again["created"]))
        with self.assertRaises(ConflictError):
            self.client.start("keyed", {"n": 2}, key="k", labels={"customer": "7"})
        self.assertNotEqual(first["id"], self.client.start("keyed", {"n": 1})["id"])
        found = list(self.client.tasks(flow="keyed", labels={"customer": "7"}, states=["running"]))
        self.assertEqual([first["id"]], [t["id"] for t in found])

    def test_lists_are_read_to_their_end(self) -> None:
        self.client.publish("many", EVENT)
        started = {self.client.start("many")["id"] for _ in range(60)}  # a page has 50
        self.assertEqual(started, {t["id"] for t in self.client.tasks(flow="many")})

    def test_a_task_is_signaled_and_waited_for(self) -> None:
        self.client.publish("signaled", EVENT)
        task = self.client.start("signaled")["id"]
        self.assertEqual("signal", self.client.waiting(task)["waits"][0]["kind"])
        with self.assertRaises(TimeoutError):
            self.client.wait(task, timeout=0.05)
        said = {"z": 12345678901234567890123, "a": [1, None, "ü"]}
        self.client.signal(task, "answer", said)
        ended = self.client.wait(task, timeout=PATIENCE)
        self.assertEqual("completed", ended["state"])
        self.assertEqual(said, ended["shared"]["said"])
        self.assertEqual(["z", "a"], list(ended["shared"]["said"]))

    def test_a_start_may_wait_for_the_end(self) -> None:
        self.client.publish("awaited", LOOP)
        self.assertEqual("completed", self.client.start("awaited", wait=PATIENCE)["task"]["state"])

    def test_a_step_is_waited_for(self) -> None:
        self.client.publish("stepwise", AFTER)
        started = self.client.start("stepwise", wait=PATIENCE, wait_until="begin")
        self.assertEqual(("completed", "running"), (started["step"]["state"], started["task"]["state"]))
        task = started["id"]
        self.assertEqual("begin", self.client.wait_for_step(task, "begin")["node"])
        for timeout in (0.05, 0.0, -1.0):
            with self.assertRaisesRegex(TimeoutError, f"step ask of task {task} has not ended after"):
                self.client.wait_for_step(task, "ask", timeout)
        self.client.signal(task, "answer", ["yes"])
        self.assertEqual(["yes"], self.client.wait_for_step(task, "ask#1", timeout=PATIENCE)["output"])
        with self.assertRaisesRegex(TroupeError, f"task {task} is completed, and its step ask#2 has not ended"):
            self.client.wait_for_step(task, "ask#2", timeout=PATIENCE)
        with self.assertRaisesRegex(InvalidError, "did you mean ask"):
            self.client.wait_for_step(task, "asc")
        with self.assertRaises(InvalidError):
            self.client.start("stepwise", wait_until="begin")  # and how long?

    def test_a_task_is_paused_resumed_and_canceled(self) -> None:
        self.client.publish("steered", EVENT)
        task = self.client.start("steered")["id"]
        self.assertTrue(self.client.pause(task)["paused"])
        self.assertFalse(self.client.resume(task)["paused"])
        self.assertEqual("started", next(self.client.steps(task))["state"])
        self.assertEqual("canceled", self.client.cancel(task, request_id="r")["state"])
        self.assertEqual("canceled", self.client.cancel(task, request_id="r")["state"])

    def test_a_task_that_has_ended_goes_on_in_a_new_one(self) -> None:
        self.client.publish("forked", TWO)
        task = self.client.start("forked", {"n": 1})["id"]
        self.client.signal(task, "answer", "yes")
        self.client.wait(task, timeout=PATIENCE)
        plan = self.client.fork(task, from_node="more", dry_run=True)
        self.assertEqual((["ask"], [("more", "requested")]), ([s["node"] for s in plan["kept_steps"]], [(s["node"], s["reason"]) for s in plan["rerun_steps"]]))
        self.assertNotIn("id", plan)
        forked = self.client.fork(task, from_node="more", params={"n": 2}, key="k")
        self.assertEqual((True, task, 1), (forked["created"], forked["forked_from"], forked["version"]))
        self.assertEqual(forked["id"], self.client.fork(task, from_node="more", params={"n": 2}, key="k")["id"])
        ended = self.client.wait(forked["id"], timeout=PATIENCE)
        self.assertEqual(("completed", {"n": 2}, "yes"), (ended["state"], ended["params"], ended["shared"]["said"]))
        with self.assertRaises(InvalidError):
            self.client.fork(task, from_node="nowhere")
        with self.assertRaises(ConflictError):
            self.client.fork(task, latest=True)

    def test_refusals_are_typed(self) -> None:
        with self.assertRaises(NotFoundError) as missing:
            self.client.task("nobody")
        self.assertEqual((404, "not_found", "path.task"), (missing.exception.status, missing.exception.code, missing.exception.field))
        self.assertIn("check the id", str(missing.exception))
        with self.assertRaises(InvalidError) as invalid:
            self.client.publish("invalid", "start: a\nnodes:\n  a: {kind: nothing}\n")
        self.assertEqual(3, invalid.exception.problems[0]["line"])
        self.assertIn("3:", str(invalid.exception))
        self.assertFalse(self.client.validate("start: a")["valid"])
        with self.assertRaises(ProblemError):
            self.client.publish("invalid", "")

    def test_warnings_are_answered_and_strict_refuses_them(self) -> None:
        warned = EVENT + "dalay: 1\n"
        self.assertFalse(self.client.validate(warned, strict=True)["valid"])
        with self.assertRaises(InvalidError) as refused:
            self.client.publish("warned", warned, strict=True)
        self.assertEqual("dalay", refused.exception.problems[0]["path"])
        self.assertTrue(self.client.validate(warned)["valid"])
        published = self.client.publish("warned", warned)
        self.assertTrue(published["created"])
        self.assertEqual([("dalay", "warning")], [(w["path"], w["severity"]) for w in published["warnings"]])

    def test_a_wrong_token_is_denied(self) -> None:
        guarded = Member("--token", "secret")
        self.addCleanup(guarded.stop)
        with self.assertRaises(DeniedError):
            with Client(guarded.url, token="wrong") as client:
                client.info()
        with Client(guarded.url, token="secret") as client:
            self.assertEqual("sqlite", client.info()["store"])

    def test_what_is_no_address_is_refused_at_once(self) -> None:
        for servers in ("bogus", "localhost:8070", "ftp://localhost", "http://", "http://a,", []):
            with self.assertRaises(ValueError):
                Client(servers)


class TestFailover(unittest.TestCase):
    def test_the_second_address_is_used_when_the_first_refuses(self) -> None:
        for servers in ([refused(), member.url], f"{refused()}, {member.url}"):
            with Client(servers, retries=0) as client:
                self.assertEqual("sqlite", client.info()["store"])

    def test_an_address_that_stops_answering_is_left(self) -> None:
        first, second = Relay(member.port), Relay(member.port)
        self.addCleanup(second.close)
        with Client([first.url, second.url], retries=0) as client:
            client.publish("left", EVENT)
            task = client.start("left")["id"]
            first.close()
            client.signal(task, "answer", 1)
            self.assertEqual("completed", client.wait(task, PATIENCE)["state"])
        self.assertGreater(second.connections, 0)

    def test_an_answer_that_broke_off_is_asked_for_again(self) -> None:
        relay = Relay(member.port, cut_after=[20])
        self.addCleanup(relay.close)
        with Client(member.url) as direct:
            direct.publish("broken", EVENT)
        with Client(relay.url) as client:
            client.start("broken", labels={"once": "only"})
            self.assertEqual(1, len(list(client.tasks(flow="broken"))))

    def test_nobody_answers(self) -> None:
        first, second = refused(), refused()
        with self.assertRaises(UnreachableError) as e:
            Client([first, second], retries=1).info()
        self.assertIn(first, str(e.exception))
        self.assertIn(second, str(e.exception))


class TestWatch(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client(member.url)
        self.addCleanup(self.client.close)

    def watched(self, client: Client, task: str, after: str = "") -> List[Any]:
        return list(client.watch(task, after))

    def test_events_are_told_as_they_happen(self) -> None:
        self.client.publish("watched", EVENT)
        task = self.client.start("watched")["id"]
        types = []
        for event in self.client.watch(task):
            types.append(event["type"])
            if event["type"] == "step_entered":
                self.client.signal(task, "answer", "yes")
        self.assertEqual("task_created", types[0])
        self.assertEqual("task_ended", types[-1])
        self.assertEqual(list(self.client.events(task)), self.watched(self.client, task))

    def test_it_goes_on_behind_an_event(self) -> None:
        self.client.publish("behind", LOOP)
        task = self.client.start("behind", wait=PATIENCE)["id"]
        events = list(self.client.events(task))
        self.assertEqual(events[5:], self.watched(self.client, task, events[4]["id"]))

    def test_broken_connections_neither_miss_nor_repeat_events(self) -> None:
        self.client.publish("cut", LOOP)
        relay = Relay(member.port, cut_after=[10, 700, 1100, 300, 1500, 1000])
        self.addCleanup(relay.close)
        task = self.client.start("cut")["id"]
        with Client(relay.url) as client:
            seen = self.watched(client, task)
        self.assertEqual(list(self.client.events(task)), seen)
        self.assertGreater(relay.connections, 5)

    def test_it_goes_on_at_the_second_address(self) -> None:
        self.client.publish("moved", EVENT)
        task = self.client.start("moved")["id"]
        first, second = Relay(member.port), Relay(member.port)
        self.addCleanup(second.close)
        with Client([first.url, second.url]) as client:
            seen = []
            for event in client.watch(task):
                seen.append(event)
                if event["type"] == "step_entered":
                    first.close()
                    self.client.signal(task, "answer", "yes")
        self.assertEqual(list(self.client.events(task)), seen)

    def test_a_task_that_is_not_there_is_refused(self) -> None:
        with self.assertRaises(NotFoundError):
            next(self.client.watch("nobody"))

    def test_a_silent_stream_is_replaced(self) -> None:
        self.client.publish("silent", EVENT)
        task = self.client.start("silent")["id"]
        relay = Relay(member.port)
        self.addCleanup(relay.close)
        with Client(relay.url, silence=0.2) as client:
            heard = iter(client.watch(task))
            while next(heard)["type"] != "step_entered":
                pass
            ended = threading.Thread(target=lambda: [None for _ in heard], daemon=True)
            ended.start()
            while relay.connections < 3:
                ended.join(0.01)
            self.client.signal(task, "answer", "yes")
            ended.join(PATIENCE)
            self.assertFalse(ended.is_alive())
