"""Workers at a server that is not, or not always, a member: a proxy, or another program at its
address."""

from __future__ import annotations

import json
import logging
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List

from tests.member import PATIENCE
from troupe_engine import Job, Worker

ODD: List[Any] = [
    None,
    {"items": [], "jobs": 1, "canceled": "x", "registered": "yes"},
    {"items": [7], "jobs": [None], "canceled": [{}]},
    {"items": [{"problem": {}}], "jobs": [{"id": "j", "key": "k", "token": "t", "task": "k", "service": "other", "input": 1}]},
]
PAGES = [301, 302, 400, 401, 403, 404, 405, 502]
JOB = {"id": "j", "key": "k", "token": "t", "task": "k", "service": "s", "input": 20, "lease_ms": 300}


class Page:
    """An answer that a proxy may give."""

    def __init__(self, status: int) -> None:
        self.status = status


class Odd(ThreadingHTTPServer):
    """Answers each kind of request in unusual ways before it answers like a member."""

    daemon_threads = False  # they end with the connections, which the worker closes

    def __init__(self, odd: List[Any]) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.odd = odd
        self.prolonged = 0  # number of requests to renew claims
        self.hang = threading.Event()  # the first one is not answered before it is set
        self.lock = threading.Lock()
        self.asked: Dict[str, int] = {}
        self.given = False
        self.job: Dict[str, Any] = JOB
        self.signs = 0  # number of heartbeats
        self.deaf = False  # the first heartbeat is not answered
        self.drips = False  # heartbeats are answered byte by byte
        self.busy = False  # claims are not renewed
        self.mute = False  # requests with lines do not renew claims either
        self.beats: List[bool] = []  # whether each request to renew claims had lines
        self.largest = 0  # bytes of a heartbeat
        self.lines: Dict[str, int] = {}  # number of logged lines per job
        self.again: List[Any] = []  # jobs for later polls
        self.params: List[str] = []  # answers to requests for large params
        self.pages: List[int] = []  # status codes of the first answers to reports
        self.dislikes: Any = "bad"  # a result with which every request is rejected
        self.filtered = 0  # number of requests with it
        self.reported = threading.Event()
        self.results: List[Any] = []
        self.next: List[Any] = []  # jobs to return with the answer to reports that request some
        self.before = lambda: None  # called before it answers those
        self.left = threading.Event()  # the worker has announced its end
        self.released: List[Any] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has disconnected hears no answer."""

    def answer(self, kind: str, body: Any) -> Any:
        if kind == "heartbeat" and "claims" not in body:
            with self.lock:
                self.signs += 1
                first = self.signs == 1
            if first and self.deaf:
                self.hang.wait(PATIENCE)
        if kind == "heartbeat" and "claims" in body:
            with self.lock:
                self.prolonged += 1
                first = self.prolonged == 1
                if not self.busy and not self.mute:
                    for claim in body["claims"]:
                        self.lines[claim["job"]] = max(self.lines.get(claim["job"], 0), claim.get("lines_from", 0) + len(claim.get("lines", [])))
            if first:
                self.hang.wait(PATIENCE)
            if self.busy:
                return Page(503)
            if self.mute:
                self.beats.append(any("lines" in claim for claim in body["claims"]))
                return Page(413) if self.beats[-1] else {"canceled": []}
        with self.lock:
            n = self.asked[kind] = self.asked.get(kind, 0) + 1
            if n <= len(self.odd):
                return self.odd[n - 1]
            if kind == "poll":
                given, self.given = self.given, True
                jobs, self.again = (self.again, []) if given else ([self.job], self.again)
                return {"jobs": jobs}
            if kind == "reports":
                if self.pages:
                    return Page(self.pages.pop())
                if any(report["output"] == self.dislikes for report in body["reports"]):
                    self.filtered += 1
                    return Page(400)
                self.results += [report["output"] for report in body["reports"]]
                self.reported.set()
                jobs, self.next = (self.next, []) if "next" in body else ([], self.next)
                if jobs:
                    self.before()
                return {"items": [{} for _ in body["reports"]], "jobs": jobs}
            if kind == "release":
                self.released += body["claims"]
            return {"registered": True, "canceled": []}


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "null")
        if self.path.endswith("/heartbeat"):
            self.server.largest = max(self.server.largest, int(self.headers["Content-Length"]))  # type: ignore[attr-defined]
        drips = self.server.drips and "claims" in (body or {})  # type: ignore[attr-defined]
        answer = self.server.answer(self.path.rsplit("/", 1)[1], body)  # type: ignore[attr-defined]
        if drips:
            self.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000)
        elif isinstance(answer, Page):
            self.reply("<html>", answer.status)
        else:
            self.reply(json.dumps(answer))

    def drip(self, text: bytes) -> None:
        self.close_connection = True
        try:
            for i in range(len(text)):
                self.wfile.write(text[i : i + 1])
                if self.server.hang.wait(0.02):  # type: ignore[attr-defined]
                    return
        except OSError:
            pass  # the client has given up

    def do_GET(self) -> None:
        """Large params, preceded by unusual answers."""
        odd = self.server.params  # type: ignore[attr-defined]
        self.reply(odd.pop(0) if odd else '{"params": {"by": 3}}')

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.reply("null")

    def do_DELETE(self) -> None:
        self.server.left.set()  # type: ignore[attr-defined]
        self.reply("[]")

    def reply(self, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


class OddTest(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("troupe").addHandler(logging.NullHandler())
        logging.getLogger("troupe").propagate = False
        self.done = threading.Event()  # lets the handler return

    def serve(self, odd: List[Any]) -> Odd:
        server = Odd(odd)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        self.addCleanup(serving.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.hang.set)
        return server

    def double(self, job: Job) -> Any:
        self.done.wait(PATIENCE)
        return job.input * job.params.get("by", 2)

    def work(self, server: Odd, handler: Any = None, heartbeat: float = 0.02) -> Worker:
        """Runs a worker that doubles the input of the job once it may."""
        worker = Worker(f"http://127.0.0.1:{server.server_port}", id="w", heartbeat=heartbeat, wait=0)
        worker.handle("s", handler or self.double)
        running = threading.Thread(target=lambda: worker.run(signals=False))
        running.start()
        self.addCleanup(running.join)
        self.addCleanup(worker.stop)
        return worker

    def until(self, condition: Callable[[], bool]) -> None:
        waited = threading.Event()
        for _ in range(6000):
            if condition():
                return
            waited.wait(0.01)
        self.fail("it did not happen")

    def test_a_worker_outlasts_odd_answers(self) -> None:
        server = self.serve(ODD)
        server.hang.set()
        self.work(server)
        self.until(lambda: server.asked.get("heartbeat", 0) > 2 * len(ODD) and server.prolonged > 1)
        self.done.set()
        self.assertTrue(server.reported.wait(PATIENCE), f"the result is delivered: {server.asked}")
        self.assertEqual([40], server.results)

    def test_a_result_outlasts_answers_that_are_no_members(self) -> None:
        self.done.set()
        for status in PAGES:
            server = self.serve([])
            server.pages = [status]
            self.work(server)
            self.assertTrue(server.reported.wait(PATIENCE), f"after {status} the result is delivered")
            self.assertEqual([40], server.results)

    def test_results_that_something_on_the_way_refuses_keep_no_others(self) -> None:
        server = self.serve([])
        jobs = [{**JOB, "id": f"j{i}", "input": i} for i in range(40)]
        server.job, server.again = jobs[0], jobs[1:]
        begun = threading.Semaphore(0)

        def handler(job: Job) -> Any:
            begun.release()
            self.done.wait(PATIENCE)
            return "bad" if job.input % 10 == 0 else job.input

        self.work(server, handler)
        for _ in jobs:
            self.assertTrue(begun.acquire(timeout=PATIENCE))
        self.done.set()
        good = [job["input"] for job in jobs if job["input"] % 10 != 0]
        self.until(lambda: len(server.results) >= len(good) and server.filtered > 12)
        self.assertEqual(good, sorted(server.results))
        server.dislikes = None
        self.until(lambda: len(server.results) == len(jobs))

    def test_large_params_outlast_answers_that_are_no_members(self) -> None:
        server = self.serve([])
        server.job = {**JOB, "params_key": "k"}
        server.params = ["", "null", "{}", "[]", '{"params": null}', "<html>"]
        self.done.set()
        self.work(server)
        self.assertTrue(server.reported.wait(PATIENCE))
        self.assertEqual([60], server.results)

    def test_a_job_that_comes_again_ends_what_was_begun_of_it(self) -> None:
        server = self.serve([])
        server.hang.set()
        begun, canceled = threading.Semaphore(0), threading.Event()

        def handler(job: Job) -> int:
            begun.release()
            if job.deliveries == 0 and job.wait_canceled(PATIENCE):
                canceled.set()
            return job.deliveries

        self.work(server, handler)
        self.assertTrue(begun.acquire(timeout=PATIENCE))
        server.again = [{**JOB, "token": "newer", "deliveries": 1}]  # the claim expired while worker and server were disconnected
        self.assertTrue(canceled.wait(PATIENCE / 2))
        self.assertTrue(server.reported.wait(PATIENCE))
        self.assertEqual([1], server.results)

    def test_a_heartbeat_that_is_answered_too_slowly_holds_up_no_other(self) -> None:
        server = self.serve([])
        server.prolonged = 1  # the first one does not hang
        server.drips = True
        self.work(server)
        self.until(lambda: server.prolonged > 8)
        self.done.set()
        self.assertTrue(server.reported.wait(PATIENCE))

    def test_a_sign_of_life_that_is_not_answered_holds_up_no_other(self) -> None:
        server = self.serve([])
        server.prolonged = 1
        server.deaf = True
        begun = time.monotonic()
        self.work(server)
        self.until(lambda: server.signs > 1)
        self.assertLess(time.monotonic() - begun, 20)
        self.done.set()

    def test_jobs_that_log_while_no_member_answers_do_not_flood_it(self) -> None:
        server = self.serve([])
        server.hang.set()
        server.busy = True

        def handler(job: Job) -> None:
            while not self.done.wait(0.01):
                job.log("on and on")

        with self.assertLogs("troupe", "WARNING") as said:
            self.work(server, handler)
            self.until(lambda: server.prolonged > 50)
        server.busy = False
        self.until(lambda: server.lines.get("j", 0) > 50)
        self.done.set()
        self.assertEqual(1, len([line for line in said.output if "could not be prolonged" in line]), said.output)
        self.assertTrue(server.reported.wait(PATIENCE))

    def test_claims_are_prolonged_while_something_on_the_way_refuses_what_jobs_log(self) -> None:
        server = self.serve([])
        server.hang.set()
        server.mute = True
        server.job = {**JOB, "lease_ms": 60_000}

        def handler(job: Job) -> None:
            while not self.done.wait(0.01):
                job.log("on and on")

        with self.assertLogs("troupe", "WARNING") as said:
            self.work(server, handler, heartbeat=5)
            self.until(lambda: server.beats.count(True) > 3)
        beats = list(server.beats)
        server.mute = False
        self.until(lambda: server.lines.get("j", 0) > 50)
        self.done.set()
        self.assertNotIn((True, True), list(zip(beats, beats[1:])), "each is followed by one without lines")
        self.assertEqual(1, len([line for line in said.output if "could not be prolonged" in line]), said.output)
        self.assertTrue(server.reported.wait(PATIENCE))

    def test_what_many_jobs_log_does_not_make_a_request_too_large(self) -> None:
        server = self.serve([])
        server.hang.set()
        jobs = [{**JOB, "id": f"j{i}", "lease_ms": 60_000} for i in range(40)]
        server.job, server.again = jobs[0], jobs[1:]

        def handler(job: Job) -> None:
            for _ in range(200):
                job.log("x" * 1000)
            self.done.wait(PATIENCE)

        self.work(server, handler)
        self.until(lambda: [server.lines.get(job["id"]) for job in jobs] == [200] * len(jobs))
        self.done.set()
        self.assertLess(server.largest, 2 << 20)

    def test_jobs_come_with_the_answer_to_a_report(self) -> None:
        server = self.serve([])
        server.next = [{**JOB, "id": "next", "input": 21}]
        self.done.set()
        self.work(server)
        self.until(lambda: len(server.results) == 2)
        self.assertEqual([40, 42], server.results)

    def test_jobs_that_come_when_the_worker_is_to_stop_are_given_back(self) -> None:
        server = self.serve([])
        server.next = [{**JOB, "id": "next"}]
        worker = self.work(server)

        def stop() -> None:
            worker.stop()
            server.left.wait(PATIENCE)

        server.before = stop
        self.done.set()
        self.until(lambda: server.released != [])
        self.assertEqual([{"job": "next", "token": "t"}], server.released)
        self.assertEqual([40], server.results)

    def test_a_heartbeat_that_hangs_holds_up_no_other(self) -> None:
        server = self.serve([])
        self.work(server)
        self.until(lambda: server.prolonged > 1)
        self.done.set()
        self.assertTrue(server.reported.wait(PATIENCE))
