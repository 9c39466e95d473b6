"""Workers against a real member."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import unittest
from decimal import Decimal
from typing import Any, Callable, Dict, List

from tests.member import PATIENCE, Member, Relay, refused
from troupe_engine import Client, Failed, Fatal, Job, JobCanceled, ProblemError, Worker

# Each test has a flow and a service with this name.
ONE = "start: a\nnodes:\n  a: {{exec_type: queue, service: {0}, prep: {{input_key: $params.it}}, post: {{output_key: out}}{1}}}\nresult: out\n"

member: Member


def setUpModule() -> None:
    global member
    logging.getLogger("troupe").addHandler(logging.NullHandler())
    logging.getLogger("troupe").propagate = False
    member = Member()
    unittest.addModuleCleanup(member.stop)


class WorkerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client(member.url)
        self.addCleanup(self.client.close)
        self.name = self.id().rsplit(".", 1)[1].replace("_", "-")

    def publish(self, more: str = "") -> None:
        self.client.publish(self.name, ONE.format(self.name, more))

    def start(self, it: Any = None) -> str:
        return self.client.start(self.name, {"it": it})["id"]

    def work(self, handler: Callable[[Job], Any], servers: Any = None, **settings: Any) -> "Running":
        settings.setdefault("heartbeat", 0.2)
        worker = Worker(servers or member.url, **settings)
        worker.handle(self.name, handler)
        running = Running(worker)
        self.addCleanup(running.stop)
        return running

    def ended(self, task: str) -> Any:
        return self.client.wait(task, PATIENCE)

    def until(self, condition: Callable[[], bool]) -> None:
        waited = threading.Event()
        for _ in range(6000):
            if condition():
                return
            waited.wait(0.01)
        self.fail("it never came about")


class Running:
    """A worker that runs in a thread."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._thread = threading.Thread(target=worker.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.worker.stop()
        self.join()

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the worker does not end"


class TestJobs(WorkerTest):
    def test_a_flow_of_queue_nodes_is_carried_out(self) -> None:
        self.client.publish(self.name, """
start: split
nodes:
  split: {exec_type: queue, service: split, prep: {input_key: $params.text}, post: {output_key: words}}
  measure: {kind: foreach, exec_type: queue, service: measure, parallel_mode: concurrent, prep: {input_key: words}, post: {output_key: sizes}}
  add: {exec_type: queue, service: add, prep: {input_key: sizes}, post: {output_key: total}}
edges:
  - {from: split, action: default, to: measure}
  - {from: measure, action: default, to: add}
result: total
""")
        worker = Worker(member.url)

        @worker.handler("split")
        def split(job: Job) -> List[str]:
            return job.input.split()

        @worker.handler("measure")
        async def measure(job: Job) -> int:
            await asyncio.sleep(0)
            return len(job.input)

        @worker.handler("add")
        def add(job: Job) -> int:
            return sum(job.input)

        running = Running(worker)
        self.addCleanup(running.stop)
        words = ["word" * i for i in range(1, 101)]
        tasks = [self.client.start(self.name, {"text": " ".join(words)})["id"] for _ in range(3)]
        for task in tasks:
            self.assertEqual(sum(len(w) for w in words), self.ended(task)["result"])

    def test_a_job_tells_where_it_comes_from(self) -> None:
        self.publish(", params: {color: red}, labels: [gpu]")
        told: "queue.Queue[Job]" = queue.Queue()
        self.work(told.put, labels=["eu", "gpu"])
        task = self.start({"z": 12345678901234567890123, "a": 1})
        job = told.get(timeout=PATIENCE)
        self.assertEqual((task, self.name, "a", 0, 1, 1, 0), (job.task, job.flow, job.step, job.unit, job.units, job.attempt, job.deliveries))
        self.assertEqual(self.name, job.service)
        self.assertEqual(["gpu"], job.labels)
        self.assertEqual(["z", "a"], list(job.input))
        self.assertEqual(12345678901234567890123, job.input["z"])
        self.assertEqual("red", job.params["color"])

    def test_a_handler_that_raises_fails_the_attempt_with_its_message(self) -> None:
        self.publish(", retry: {max_attempts: 2}")

        def handler(job: Job) -> str:
            if job.attempt == 1:
                job.log("trying", job.input)
                raise RuntimeError("no luck")
            return "fine"

        self.work(handler)
        task = self.start(7)
        self.assertEqual("fine", self.ended(task)["result"])
        failed = next(r for r in self.client.runs(task) if r.get("error"))
        self.assertEqual(("error", "no luck"), (failed["state"], failed["error"]))
        log = self.client.log(failed["job"])
        self.assertTrue(log.startswith("trying 7\nTraceback "), log)

    def test_three_attempts_have_one_key_and_three_ids(self) -> None:
        self.publish(", timeout_ms: 60000, retry: {max_attempts: 3}, on_error: fail")
        told: "queue.Queue[Job]" = queue.Queue()

        def handler(job: Job) -> None:
            told.put(job)
            raise RuntimeError("no luck")

        self.work(handler)
        self.assertIn("no luck", self.ended(self.start())["error"])
        jobs = [told.get(timeout=PATIENCE) for _ in range(3)]
        self.assertEqual([1, 2, 3], [job.attempt for job in jobs])
        self.assertEqual((1, 3), (len({job.key for job in jobs}), len({job.id for job in jobs})))
        self.assertTrue(jobs[0].key.startswith(jobs[0].task + "."), jobs[0].key)

    def test_a_decorator_without_parentheses_takes_the_name_of_the_function(self) -> None:
        self.publish("")
        worker = Worker(member.url, heartbeat=0.2)

        def handler(job: Job) -> str:
            return "fine"

        handler.__name__ = self.name
        self.assertIs(handler, worker.handler(handler))
        self.addCleanup(Running(worker).stop)
        self.assertEqual("fine", self.ended(self.start())["result"])

    def test_a_second_handler_and_what_is_no_handler_are_refused(self) -> None:
        worker = Worker(member.url)

        @worker.handler("mail")
        def mail(job: Job) -> None: ...

        with self.assertRaisesRegex(ValueError, "the service 'mail' has a handler already"):
            worker.handle("mail", mail)
        with self.assertRaisesRegex(ValueError, "the service 'mail' has a handler already"):
            worker.handler(mail)
        with self.assertRaisesRegex(TypeError, "the handler of the service 'post' is no function"):
            worker.handle("post", "mail")  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "the name of a service is a text"):
            worker.handle(mail, mail)  # type: ignore[arg-type]

    def test_values_of_a_stream_are_read_while_the_handler_goes_on(self) -> None:
        self.publish(", retry: {max_attempts: 2}")
        read = threading.Event()

        def handler(job: Job) -> str:
            answer = job.stream("answer")
            for token in ("it", {"is": "é"}, None):
                answer.write(token)
            if job.attempt == 1:
                read.wait(PATIENCE)
                raise ValueError("cut off")
            answer.close()
            return "fine"

        self.work(handler)
        task = self.start(7)
        values = []
        for value in self.client.stream(task, "answer", follow=True):
            values.append(value)
            if len(values) == 3:
                read.set()
        self.assertEqual("fine", self.ended(task)["result"])
        self.assertEqual(["it", {"is": "é"}, None] * 2, [value["value"] for value in values])
        self.assertEqual([(n, "a", 1 + n // 3) for n in range(6)], [(v["offset"], v["step"], v["attempt"]) for v in values])
        self.assertEqual(values[4:], list(self.client.stream(task, "answer", start=4)))
        self.assertEqual(values[4:], list(self.client.stream(task, "answer", start=4, follow=True)))
        self.assertEqual([("answer", 6, True)], [(s["name"], s["length"], s["ended"]) for s in self.client.streams(task)])

    def test_a_coroutine_streams_as_well_and_all_is_stored_before_it_ends(self) -> None:
        self.publish("")

        async def handler(job: Job) -> int:
            for n in range(1000):
                job.stream("rows").write({"n": n})
            return 1000

        self.work(handler)
        task = self.start(7)
        self.assertEqual(1000, self.ended(task)["result"])
        self.assertEqual(list(range(1000)), [v["value"]["n"] for v in self.client.stream(task, "rows")])

    def test_what_a_stream_cannot_have_is_refused(self) -> None:
        self.publish("")
        refusals: List[str] = []

        def handler(job: Job) -> None:
            for name, value in (("a/b", 1), ("a", object()), ("a", "x" * (256 << 10))):
                try:
                    job.stream(name).write(value)
                except (TypeError, ValueError) as e:
                    refusals.append(str(e))

        self.work(handler)
        self.ended(self.start(7))
        self.assertEqual(3, len(refusals))

    def test_what_a_handler_logs_is_read_while_it_goes_on(self) -> None:
        self.publish("")
        told: "queue.Queue[Job]" = queue.Queue()
        leave = threading.Event()

        def handler(job: Job) -> str:
            job.log("half", "way")
            told.put(job)
            leave.wait(PATIENCE)
            job.log("done")
            return "fine"

        self.work(handler)
        task = self.start(7)
        job = told.get(timeout=PATIENCE)
        try:
            self.until(lambda: self.logged(job) == "half way\n")
        finally:
            leave.set()
        self.assertEqual("fine", self.ended(task)["result"])
        self.assertEqual("half way\ndone\n", self.logged(job))
        for follow in (False, True):
            lines = list(self.client.logs(task, node=job.step, unit=0, attempt=1, follow=follow))
            self.assertEqual(["half way", "done"], [line["text"] for line in lines])
        self.assertEqual([], list(self.client.logs(task, stream="stdout")))

    def logged(self, job: Job) -> str:
        try:
            return self.client.log(job.id)
        except ProblemError:  # none has arrived yet
            return ""

    def test_what_has_no_message_is_named(self) -> None:
        self.publish(", on_error: fail")
        errors = {"nothing": ValueError(), "a key": KeyError("x"), "an exit": SystemExit(3)}

        def handler(job: Job) -> None:
            raise errors[job.input]

        self.work(handler)
        for case, text in {"nothing": "ValueError", "a key": "KeyError('x')", "an exit": "3"}.items():
            self.assertIn(text, self.ended(self.start(case))["error"])

    def test_what_fails_to_tell_of_itself_fails_the_attempt(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("there is no text")

            __repr__ = __str__

        class Changing(Dict[str, int]):
            def items(self) -> Any:
                raise RuntimeError("dictionary changed size during iteration")

        def handler(job: Job) -> Any:
            if job.input == "result":
                return Changing(a=1)
            if job.input == "details":
                raise Failed("no such row", details=Mute())
            raise Mute

        async def coroutine(job: Job) -> Any:
            return handler(job)

        self.publish()
        for work in (handler, coroutine):
            running = self.work(work, concurrency=1)
            for case, error in [("error", "Mute"), ("details", "no such row"), ("result", "dictionary changed size")]:
                task = self.start(case)
                self.assertIn(error, self.ended(task)["error"])
            running.stop()

    def test_a_coroutine_that_exits_costs_its_job_only(self) -> None:
        async def leave() -> None:
            sys.exit("nothing to do")

        async def handler(job: Job) -> Any:
            if job.input == "exit":
                await leave()
            if job.input == "task":
                await asyncio.create_task(leave())
            return "done"

        self.publish()
        self.work(handler)
        for case in ("exit", "task"):
            self.assertIn("nothing to do", self.ended(self.start(case))["error"])
            self.assertEqual("done", self.ended(self.start())["result"])

    def test_a_fatal_error_is_not_retried(self) -> None:
        self.publish(", retry: {max_attempts: 6}, on_error: fail")
        attempts: List[int] = []

        async def handler(job: Job) -> None:
            attempts.append(job.attempt)
            raise Fatal("never")

        self.work(handler)
        ended = self.ended(self.start())
        self.assertEqual("failed", ended["state"])
        self.assertIn("never", ended["error"])
        self.assertEqual([1], attempts)

    def test_numbers_that_a_job_tells_are_kept_with_its_attempt_whatever_becomes_of_it(self) -> None:
        self.publish(", retry: {max_attempts: 2}, on_error: fail")

        def handler(job: Job) -> None:
            for rows in (3, 4.5, float("nan")):
                job.count("rows", rows, {"table": "orders"})
            job.count("files")
            job.count("")
            if job.attempt == 1:
                raise Failed("no luck")

        self.work(handler)
        task = self.start()
        self.assertEqual("completed", self.ended(task)["state"])
        attempts = [r for r in self.client.runs(task) if r["kind"] == "attempt"]
        want = [{"name": "rows", "labels": {"table": "orders"}, "count": 2, "sum": 7.5, "last": 4.5}, {"name": "files", "count": 1, "sum": 1, "last": 1}]
        self.assertEqual([want, want], [r["metrics"] for r in attempts])

    def test_what_is_more_numbers_than_a_member_takes_is_left_out(self) -> None:
        self.publish()

        def handler(job: Job) -> None:
            for i in range(150):
                job.count(f"n{i}")
            for value in (1e308, 1e308, 10**400, "many"):
                job.count("n0", value)  # type: ignore[arg-type]

        self.work(handler)
        task = self.start()
        self.ended(task)
        numbers = next(r for r in self.client.runs(task) if r["kind"] == "attempt")["metrics"]
        self.assertEqual(100, len(numbers))
        self.assertEqual({"name": "n0", "count": 2, "sum": 1e308, "last": 1e308}, numbers[0])

    def test_details_of_a_failure_are_kept_with_its_attempt(self) -> None:
        self.publish(", retry: {max_attempts: 2}, on_error: fail")
        details = [{"customer": 7, "tried": ["a", "\u00e9"]}, {1}]

        def handler(job: Job) -> None:
            if job.attempt == 1:
                raise Failed("no such customer", details=details[0])
            raise Fatal("never", details[1])

        self.work(handler)
        task = self.start()
        self.assertIn("never", self.ended(task)["error"])
        attempts = [r for r in self.client.runs(task) if r["kind"] == "attempt"]
        self.assertEqual(["no such customer", "never"], [r["error"] for r in attempts])
        self.assertEqual([details[0], "{1}"], [r["details"] for r in attempts], "what is no JSON is told as a text")

    def test_details_that_are_too_large_leave_the_error(self) -> None:
        self.publish(", on_error: fail")

        def handler(job: Job) -> None:
            raise Failed("no such customer", details="x" * (4 << 20))

        self.work(handler)
        self.assertIn("no such customer (its details have 4194306 bytes, more than the 65536 that are kept)", self.ended(self.start())["error"])

    def test_numbers_keep_all_their_digits(self) -> None:
        self.publish()
        self.work(lambda job: [job.input, Decimal("1.10"), 1.5], decimals=True)
        with Client(member.url, decimals=True) as client:
            sent = {"id": 12345678901234567890123, "price": Decimal("9007199254740993.10"), "far": Decimal("1E+400"), "text": "1.10"}
            task = client.start(self.name, {"it": sent})["id"]
            result = client.wait(task, PATIENCE)["result"]
            self.assertEqual([sent, Decimal("1.10"), Decimal("1.5")], result)
            self.assertEqual(["9007199254740993.10", "1.10"], [str(result[0]["price"]), str(result[1])])
            self.assertEqual(sent, client.task(task)["params"]["it"])

    def test_a_result_that_is_no_json_fails_for_good(self) -> None:
        self.publish(", retry: {max_attempts: 6}, on_error: fail")
        results = {"a set": {1}, "not a number": float("nan"), "no decimal": Decimal("Infinity"), "half a character": "\ud800"}
        attempts: List[int] = []

        def handler(job: Job) -> Any:
            attempts.append(job.attempt)
            return results[job.input]

        self.work(handler)
        for case in results:
            self.assertIn("cannot be sent", self.ended(self.start(case))["error"])
        self.assertEqual([1, 1, 1, 1], attempts)

    def test_a_result_that_is_refused_fails_for_good_and_keeps_no_other(self) -> None:
        self.publish(", retry: {max_attempts: 6}, on_error: fail")
        sizes = [3 << 20, 1, 9 << 20, 2]
        self.work(lambda job: "x" * job.input)
        tasks = [self.start(size) for size in sizes]
        large, one, huge, two = [self.ended(task) for task in tasks]
        self.assertEqual(("x", "xx"), (one["result"], two["result"]))
        for refusal in (large, huge):
            self.assertEqual("failed", refusal["state"])
            self.assertEqual(1, len([r for r in self.client.runs(refusal["id"]) if r["kind"] == "attempt"]))

    def test_large_params_are_fetched(self) -> None:
        self.publish()

        async def later(job: Job) -> int:
            return len(job.params["it"])

        self.work(later)
        tasks = [self.start("x" * 100_000) for _ in range(3)]
        self.assertEqual([100_000] * 3, [self.ended(task)["result"] for task in tasks])

    def test_notes_are_told_to_whoever_watches(self) -> None:
        self.publish()
        noted = threading.Event()

        def handler(job: Job) -> None:
            job.progress("rendering\x00 " + "ü" * 500)
            noted.wait(PATIENCE)
            job.progress("almost done")
            job.wait_canceled(PATIENCE)

        self.work(handler, running_after=PATIENCE)
        task = self.start()
        notes: List[str] = []
        for event in self.client.watch(task):
            if event["type"] == "attempt_status_changed":
                notes.append(event["status_text"])
                noted.set()
            if len(notes) == 2:
                self.client.cancel(task)
        self.assertEqual("almost done", notes[1])
        self.assertTrue(notes[0].startswith("rendering\ufffd üüü"))
        self.assertLessEqual(len(notes[0].encode()), 256)

    def test_labels_decide_who_gets_a_job(self) -> None:
        self.publish(", labels: [gpu]")
        plain = self.work(lambda job: "plain")
        self.work(lambda job: "gpu", labels=["gpu", "eu"])
        self.assertEqual("gpu", self.ended(self.start())["result"])
        known = {w["id"]: w.get("labels", []) for w in self.client.workers()}
        self.assertEqual([], known.get(plain.worker.id, []))

    def test_no_more_than_concurrency_jobs_are_at_work(self) -> None:
        self.publish()
        lock, now, most = threading.Lock(), 0, 0

        def handler(job: Job) -> None:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            job.wait_canceled(0.05)
            with lock:
                now -= 1

        tasks = [self.start() for _ in range(20)]
        self.work(handler, concurrency=2, prefetch=3)
        for task in tasks:
            self.assertEqual("completed", self.ended(task)["state"])
        self.assertEqual(2, most)


class TestClaims(WorkerTest):
    def test_a_long_job_keeps_its_claim(self) -> None:
        self.publish(", visibility_ms: 4000")
        begun: List[str] = []

        def handler(job: Job) -> str:
            begun.append(job.id)
            return "canceled" if job.wait_canceled(9.0) else "done"

        self.work(handler)
        self.work(handler)
        self.assertEqual("done", self.ended(self.start())["result"])
        self.assertEqual(1, len(begun))

    def test_a_canceled_job_reaches_its_handler(self) -> None:
        self.publish()
        begun: "queue.Queue[Job]" = queue.Queue()
        heard: "queue.Queue[str]" = queue.Queue()

        def plain(job: Job) -> None:
            begun.put(job)
            while True:
                try:
                    job.check()
                except JobCanceled:
                    heard.put("plain")
                    raise
                job.wait_canceled(PATIENCE)

        async def coroutine(job: Job) -> None:
            begun.put(job)
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                heard.put("coroutine")
                raise

        for name, handler in (("plain", plain), ("coroutine", coroutine)):
            running = self.work(handler)
            task = self.start()
            begun.get(timeout=PATIENCE)
            self.client.cancel(task)
            self.assertEqual(name, heard.get(timeout=PATIENCE))
            running.stop()
            self.assertEqual("canceled", self.client.task(task)["state"])

    def test_a_worker_that_is_killed_loses_its_job_to_another(self) -> None:
        self.publish(", visibility_ms: 3000")
        doomed = self.doomed()
        task = self.start()
        assert doomed.stdout is not None
        job_id = doomed.stdout.readline().decode().strip()
        doomed.kill()
        doomed.wait()
        told: "queue.Queue[Job]" = queue.Queue()
        self.work(told.put)
        job = told.get(timeout=PATIENCE)
        self.assertEqual("completed", self.ended(task)["state"])
        self.assertEqual((job_id, 1), (job.id, job.deliveries))

    def doomed(self) -> "subprocess.Popen[bytes]":
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        doomed = subprocess.Popen([sys.executable, "-m", "tests.doomed", member.url, self.name], cwd=root, stdout=subprocess.PIPE)
        assert doomed.stdout is not None
        self.addCleanup(doomed.stdout.close)
        self.addCleanup(doomed.wait)
        self.addCleanup(doomed.kill)
        return doomed


class TestDrain(WorkerTest):
    def test_what_has_not_begun_is_given_back_and_what_has_may_finish(self) -> None:
        self.publish()
        tasks = [self.start(i) for i in range(3)]
        begun: "queue.Queue[Job]" = queue.Queue()
        leave = threading.Event()

        def handler(job: Job) -> str:
            begun.put(job)
            leave.wait(PATIENCE)
            return "first"

        first = self.work(handler, concurrency=1, prefetch=2)
        job = begun.get(timeout=PATIENCE)
        self.until(lambda: all(j["state"] == "claimed" for j in self.client.jobs([self.name])))
        first.worker.stop()
        self.work(lambda job: "second")  # gets them at once, not when the claims expire after a minute
        results = [self.ended(task)["result"] for task in tasks if task != job.task]
        self.assertEqual(["second", "second"], results)
        leave.set()
        self.assertEqual("first", self.ended(job.task)["result"])
        first.join()
        self.assertTrue(begun.empty())
        self.assertNotIn(first.worker.id, [w["id"] for w in self.client.workers()])

    def test_jobs_that_do_not_finish_in_time_are_given_back(self) -> None:
        self.publish()
        begun = threading.Semaphore(0)

        async def coroutine(job: Job) -> str:
            begun.release()
            await asyncio.sleep(PATIENCE)
            return "in vain"

        first = self.work(coroutine, grace=0.05)
        task = self.start()
        self.assertTrue(begun.acquire(timeout=PATIENCE))
        first.stop()
        self.work(lambda job: job.attempt)
        self.assertEqual(1, self.ended(task)["result"])  # it is not a failed attempt

    def test_sigterm_drains(self) -> None:
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.publish()
        code = (
            "import sys\nfrom troupe_engine import Worker\nw = Worker(sys.argv[1], id='termed')\n"
            "def slow(job):\n    print('begun', flush=True)\n    sys.stdin.readline()\n    return 'finished'\n"
            "w.handle(sys.argv[2], slow)\nw.run()\nprint('drained', flush=True)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code, member.url, self.name], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        task = self.start()
        assert process.stdout is not None and process.stdin is not None
        self.assertEqual(b"begun\n", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.until(lambda: "termed" not in [w["id"] for w in self.client.workers()])
        process.stdin.write(b"go on\n")
        process.stdin.flush()
        self.assertEqual(b"drained\n", process.stdout.readline())
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertEqual("finished", self.client.task(task)["result"])

    def test_a_worker_ends_in_time_although_no_member_answers(self) -> None:
        relay = Relay(member.port)
        self.addCleanup(relay.close)
        running = self.work(lambda job: None, servers=relay.url, grace=0.0)
        self.until(lambda: running.worker.id in [w["id"] for w in self.client.workers()])
        relay.hold()
        self.until(lambda: relay.held > 0)  # a heartbeat is in flight
        begun = time.monotonic()
        running.stop()
        self.assertLess(time.monotonic() - begun, 15)

    def test_a_worker_that_waits_for_jobs_ends_at_once(self) -> None:
        running = self.work(lambda job: None, wait=60.0, grace=0.0)
        self.until(lambda: running.worker.id in [w["id"] for w in self.client.workers()])
        running.stop()


class TestAddresses(WorkerTest):
    def test_the_second_address_is_used_when_the_first_refuses(self) -> None:
        self.publish()
        self.work(lambda job: job.input + 1, servers=[refused(), member.url])
        self.assertEqual(2, self.ended(self.start(1))["result"])

    def test_an_address_that_stops_answering_is_left_and_nothing_is_lost(self) -> None:
        self.publish()
        first, second = Relay(member.port), Relay(member.port)
        self.addCleanup(second.close)
        begun, leave = threading.Semaphore(0), threading.Event()
        runs: List[str] = []

        def handler(job: Job) -> int:
            runs.append(job.id)
            begun.release()
            leave.wait(PATIENCE)
            return job.input

        self.work(handler, servers=[first.url, second.url])
        tasks = [self.start(i) for i in range(10)]
        for _ in tasks:
            self.assertTrue(begun.acquire(timeout=PATIENCE))
        first.close()
        leave.set()
        self.assertEqual(list(range(10)), [self.ended(task)["result"] for task in tasks])
        self.assertEqual(10, len(runs))

    def test_a_worker_outlasts_the_absence_of_all_members(self) -> None:
        self.publish()
        relay = Relay(member.port)
        running = self.work(lambda job: job.input, servers=relay.url)
        self.assertEqual(1, self.ended(self.start(1))["result"])
        relay.close()
        task = self.start(2)
        back = Relay(member.port, listen=relay.port)
        self.addCleanup(back.close)
        self.assertEqual(2, self.ended(task)["result"])
        running.stop()

    def test_a_worker_without_handlers_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            Worker(member.url).run()
        with self.assertRaises(ValueError):
            Worker(member.url).handle("", print)

