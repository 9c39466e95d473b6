package v1_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	retried = `{"start":"q","nodes":{"q":{"service":"paint","exec_type":"queue",` +
		`"retry":{"max_attempts":2},"post":{"output_key":"painted"}}}}`
	queueList = `{"start":"e","nodes":{"e":{"kind":"foreach","service":"paint","exec_type":"queue","parallel_mode":"concurrent","prep":{"input_key":"$params.list"},"post":{"output_key":"out"}}}}`
)

// nobodys is a job of a task that does not exist.
var nobodys = flow.JobID("task-nope", flow.Address{Node: "q", Visit: 1, Attempt: 1})

// jobs polls as a worker until n jobs have arrived.
func (s *server) jobs(n int, ask obj) []obj {
	s.Helper()
	ask["wait_ms"] = deadline.Milliseconds()
	ask["max"] = n
	var jobs []obj
	for len(jobs) < n {
		got := s.call(200, "POST", "/v1/workers/painter/poll", ask)["jobs"].([]any)
		require.NotEmpty(s, got)
		for _, j := range got {
			jobs = append(jobs, j.(obj))
		}
	}
	return jobs
}

func (s *server) job(service string) obj {
	s.Helper()
	return s.jobs(1, obj{"services": []string{service}})[0]
}

func held(jobs ...obj) []obj {
	var claims []obj
	for _, j := range jobs {
		claims = append(claims, obj{"job": j["id"], "token": j["token"]})
	}
	return claims
}

func TestAWorkerRegistersAndLives(t *testing.T) {
	s := start(t)
	require.Equal(t, obj{"registered": false, "canceled": []any{}}, s.call(200, "POST", "/v1/workers/w%201%2F2/heartbeat", obj{}))
	require.Equal(t, obj{"offline_after_ms": 15000.0}, s.call(200, "PUT", "/v1/workers/w%201%2F2",
		obj{"services": []string{"paint"}, "labels": []string{"gpu"}}))
	require.Equal(t, obj{"registered": true, "canceled": []any{}}, s.call(200, "POST", "/v1/workers/w%201%2F2/heartbeat", obj{"load": 3}))
	s.call(200, "PUT", "/v1/workers/pushed", obj{"services": []string{"paint"}, "url": "http://127.0.0.1:1", "secret": "s"})
	list := items(s.get("/v1/workers"))
	require.Equal(t, []any{"w 1/2", "pull", "online", 3.0, []any{"gpu"}},
		[]any{list[1]["id"], list[1]["type"], list[1]["state"], list[1]["load"], list[1]["labels"]})
	require.Equal(t, []any{"pushed", "push", "http://127.0.0.1:1"}, []any{list[2]["id"], list[2]["type"], list[2]["url"]})
	require.NotContains(t, list[2], "secret")

	s.refused(400, "body.services", "PUT", "/v1/workers/w", obj{"services": []string{}})
	s.refused(400, "body", "PUT", "/v1/workers/w", obj{})
	s.refused(400, "body.urls", "PUT", "/v1/workers/w", obj{"services": []string{"x"}, "urls": "x"})
	require.Contains(t, s.refused(400, "body", "PUT", "/v1/workers/w",
		obj{"services": []string{"x"}, "url": "ftp://x"})["message"], "ftp://x")
	s.refused(400, "body", "PUT", "/v1/workers/w", obj{"services": []string{strings.Repeat("x", 300)}})
	s.refused(400, "path.worker", "PUT", "/v1/workers/"+strings.Repeat("w", 300), obj{"services": []string{"x"}})
}

func TestAPollClaimsJobs(t *testing.T) {
	s := start(t)
	require.Equal(t, obj{"jobs": []any{}}, s.call(200, "POST", "/v1/workers/painter/poll", obj{"services": []string{"paint"}}), "at once")
	id := s.task(queued, obj{"color": "red"})
	job := s.job("paint")
	for name, want := range map[string]any{"task": id, "step": "q", "node": "q", "visit": 1.0,
		"attempt": 1.0, "units": 1.0, "service": "paint",
		"input": "red", "params": obj{"color": "red"}, "run_input": obj{"color": "red"}, "lease_ms": 60000.0,
		"trace": trace.Parent(id, nil, flow.Address{Node: "q", Visit: 1, Attempt: 1})} {
		require.Equal(t, want, job[name], name)
	}
	until, err := time.Parse(time.RFC3339, job["lease_until"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Minute), until, time.Minute)
	require.Equal(t, []any{"claimed", "painter"},
		[]any{s.get("/v1/jobs/" + job["id"].(string))["state"],
			s.get("/v1/jobs/" + job["id"].(string))["worker"]})
	require.Empty(t, s.call(200, "POST", "/v1/workers/other/poll", obj{"services": []string{"paint"}})["jobs"])

	for where, ask := range map[string]obj{
		"body":          {},
		"body.services": {"services": []string{}},
		"body.max":      {"services": []string{"x"}, "max": 1001},
		"body.wait_ms":  {"services": []string{"x"}, "wait_ms": 60001},
		"body.flow":     {"services": []string{"x"}, "flow": unknownKey},
		"body.wait":     {"services": []string{"x"}, "wait": 1},
	} {
		status := 400
		if where == "body.flow" {
			status = 404
		}
		s.refused(status, where, "POST", "/v1/workers/painter/poll", ask)
	}
	s.refused(400, "body", "POST", "/v1/workers/painter/poll", obj{"services": []string{strings.Repeat("x", 300)}})
}

func TestAPollIsForItsFlowAndLabels(t *testing.T) {
	s := start(t)
	mine, other := s.publish(queued), s.publish(queued)
	s.call(201, "POST", "/v1/tasks", obj{"flow": other})
	wanted := s.call(201, "POST", "/v1/tasks", obj{"flow": mine})["id"]
	job := s.jobs(1, obj{"services": []string{"paint"}, "flow": mine})[0]
	require.Equal(t, []any{wanted, mine}, []any{job["task"], job["flow"]})

	s.task(`{"start":"q","nodes":{"q":{"service":"render","exec_type":"queue","labels":["gpu"]}}}`)
	require.Empty(t, s.call(200, "POST", "/v1/workers/painter/poll", obj{"services": []string{"render"}})["jobs"])
	s.jobs(1, obj{"services": []string{"render"}, "labels": []string{"gpu", "eu"}})
}

func TestAPollThatWaitsIsAnsweredByTheNextJob(t *testing.T) {
	s := start(t)
	got := make(chan sent, 1)
	go func() {
		got <- s.send("POST", "/v1/workers/painter/poll", obj{"services": []string{"paint"}, "wait_ms": 60000})
	}()
	id := s.task(queued)
	a := <-got
	require.Equal(t, 200, a.status)
	require.Contains(t, string(a.body), id)
}

func TestAClaimedJobIsCompleted(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.task(queued, obj{"color": "red"})
		job := s.job("paint")
		path := "/v1/jobs/" + job["id"].(string)
		s.refused(409, "body", "POST", path+"/complete", obj{"token": "of another claim", "output": 1})
		s.refused(400, "body", "POST", path+"/complete", obj{"output": 1})
		done := obj{"token": job["token"], "worker": "painter", "output": obj{"n": 1}, "log": "first coat"}
		require.Equal(s, obj{"job": job["id"], "changed": true}, s.call(200, "POST", path+"/complete", done))
		require.Equal(s, obj{"painted": obj{"n": 1.0}}, s.ended(id, "completed")["shared"])
		require.Equal(s, obj{"job": job["id"], "changed": false}, s.call(200, "POST", path+"/complete", done), "again")
		require.Equal(s, obj{"content": "first coat"}, s.get(path+"/log"))
	})
	s := start(t)
	s.refused(404, "path.job", "POST", "/v1/jobs/nope/complete", obj{"token": "x"})
	s.refused(404, "path.job", "POST", "/v1/jobs/"+nobodys+"/complete", obj{"token": "x"})
}

func TestAFailedJobIsRetriedUnlessItIsFatal(t *testing.T) {
	s := start(t)
	for fatal, state := range map[bool]string{false: "completed", true: "failed"} {
		id := s.task(retried)
		job := s.job("paint")
		path := "/v1/jobs/" + job["id"].(string)
		s.refused(400, "body.error", "POST", path+"/fail", obj{"token": job["token"], "error": ""})
		require.Equal(t, obj{"job": job["id"], "changed": true},
			s.call(200, "POST", path+"/fail", obj{"token": job["token"], "error": "no paint", "fatal": fatal, "log": "empty"}))
		require.Equal(t, []any{"failed", "no paint"}, []any{s.get(path)["state"], s.get(path)["error"]})
		require.Equal(t, obj{"content": "empty"}, s.get(path+"/log"))
		if !fatal {
			again := s.job("paint")
			require.Equal(t, 2.0, again["attempt"])
			s.call(200, "POST", "/v1/jobs/"+again["id"].(string)+"/complete", obj{"token": again["token"]})
		}
		s.ended(id, state)
	}
	s.refused(404, "path.job", "POST", "/v1/jobs/nope/fail", obj{"token": "x", "error": "y"})
}

func TestManyReportsAreAnsweredEachInItsPlace(t *testing.T) {
	s := start(t)
	id := s.task(queueList, obj{"list": []int{1, 2, 3}})
	jobs := s.jobs(3, obj{"services": []string{"paint"}})
	report := func(j obj, more obj) obj {
		more["job"], more["token"] = j["id"], j["token"]
		return more
	}
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	answer := items(s.call(200, "POST", "/v1/workers/painter/reports", obj{"reports": []obj{
		report(jobs[0], obj{"output": "a", "log": "said"}),
		report(obj{"id": "nope", "token": "x"}, obj{}),
		report(obj{"id": jobs[1]["id"], "token": "of another claim"}, obj{"output": "b"}),
		report(jobs[2], obj{"error": "no paint"}),
		report(jobs[0], obj{"output": "again"}),
	}}))
	changed := []any{}
	for _, a := range answer {
		changed = append(changed, a["changed"])
	}
	require.Equal(t, []any{true, false, false, true, false}, changed)
	require.Equal(t, []any{404.0, "not_found"}, []any{answer[1]["problem"].(obj)["status"], answer[1]["problem"].(obj)["code"]})
	require.Equal(t, []any{409.0, "conflict"}, []any{answer[2]["problem"].(obj)["status"], answer[2]["problem"].(obj)["code"]})
	for _, i := range []int{0, 3, 4} {
		require.NotContains(t, answer[i], "problem")
	}
	body := `{"reports":[{"job":"` + jobs[1]["id"].(string) + `","token":"` + jobs[1]["token"].(string) + `","output":` + deep + `}]}`
	a := s.send("POST", "/v1/workers/painter/reports", body)
	require.Equal(t, 200, a.status, "%s", a.body)
	s.ended(id, "failed")

	s.refused(400, "body.reports", "POST", "/v1/workers/painter/reports", obj{"reports": []obj{}})
	s.refused(400, "body.reports[0]", "POST", "/v1/workers/painter/reports", obj{"reports": []obj{{"job": "x"}}})
}

func TestReportsBringTheNextJobs(t *testing.T) {
	s := start(t)
	id := s.task(queueList, obj{"list": []int{1, 2, 3}})
	report := func(jobs []obj, next obj) obj {
		var reports []obj
		for _, j := range jobs {
			reports = append(reports, obj{"job": j["id"], "token": j["token"]})
		}
		return s.call(200, "POST", "/v1/workers/painter/reports", obj{"reports": reports, "next": next})
	}
	answer := report(s.jobs(2, obj{"services": []string{"paint"}, "max": 2}), obj{"services": []string{"paint"}, "max": 2})
	require.Len(t, items(answer), 2)
	jobs := answer["jobs"].([]any)
	require.Len(t, jobs, 1)
	last := jobs[0].(obj)
	require.Equal(t, []any{id, "paint", 3.0}, []any{last["task"], last["service"], last["input"]})
	require.Equal(t, []any{"claimed", "painter"},
		[]any{s.get("/v1/jobs/" + last["id"].(string))["state"],
			s.get("/v1/jobs/" + last["id"].(string))["worker"]})
	require.NotContains(t, report([]obj{last}, obj{"services": []string{"paint"}}), "jobs")
	s.ended(id, "completed")

	for where, next := range map[string]obj{
		"body.next":          {},
		"body.next.services": {"services": []string{}},
		"body.next.max":      {"services": []string{"x"}, "max": 1001},
		"body.next.wait_ms":  {"services": []string{"x"}, "wait_ms": 1},
		"body.next.flow":     {"services": []string{"x"}, "flow": unknownKey},
	} {
		status := 400
		if where == "body.next.flow" {
			status = 404
		}
		s.refused(status, where, "POST", "/v1/workers/painter/reports",
			obj{"reports": []obj{{"job": last["id"], "token": "x"}}, "next": next})
	}
	s.refused(400, "body.next", "POST", "/v1/workers/painter/reports",
		obj{"reports": []obj{{"job": last["id"], "token": "x"}},
			"next": obj{"services": []string{strings.Repeat("x", 300)}}})
}

// counted is a store that counts reads.
type counted struct {
	persistence.Store
	loads atomic.Int64
}

func (c *counted) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	c.loads.Add(1)
	return c.Store.Load(ctx, ids)
}

func TestReportsWithLogsReadTheirTasksOnce(t *testing.T) {
	store := &counted{}
	s := start(t, func(set *settings) {
		set.wrap = func(inner persistence.Store) persistence.Store {
			store.Store = inner
			return store
		}
	})
	id := s.task(queueList, obj{"list": make([]int, 20)})
	reports := []obj{{"job": nobodys, "token": "x", "log": "said"}}
	for _, j := range s.jobs(20, obj{"services": []string{"paint"}}) {
		reports = append(reports, obj{"job": j["id"], "token": j["token"], "log": "said by " + j["id"].(string)})
	}
	before := store.loads.Load()
	answer := items(s.call(200, "POST", "/v1/workers/painter/reports", obj{"reports": reports}))
	require.LessOrEqual(t, store.loads.Load()-before, int64(2), "all at once for their logs, and the unknown one for its report")
	require.Equal(t, 404.0, answer[0]["problem"].(obj)["status"])
	s.ended(id, "completed")
	for _, r := range reports[1:] {
		require.Equal(t, obj{"content": "said by " + r["job"].(string)}, s.get("/v1/jobs/"+r["job"].(string)+"/log"))
	}
}

// slowRoll is a registry that stores a heartbeat only when the test lets it.
type slowRoll struct {
	api.Registry
	free chan struct{}
}

func (r slowRoll) Heartbeat(ctx context.Context, id string, load int) error {
	<-r.free
	return r.Registry.Heartbeat(ctx, id, load)
}

func TestClaimsAreExtendedWhileAHeartbeatWaitsForMembers(t *testing.T) {
	free := make(chan struct{})
	s := start(t, func(set *settings) { set.registry = func(r api.Registry) api.Registry { return slowRoll{r, free} } })
	id := s.task(queued)
	claims := held(s.job("paint"))
	beat := make(chan obj, 1)
	go func() {
		beat <- s.call(200, "POST", "/v1/workers/painter/heartbeat", obj{"claims": claims, "extend_ms": 3_600_000})
	}()
	require.Eventually(t, func() bool {
		wait := s.get("/v1/tasks/" + id + "/waiting")["waits"].([]any)[0].(obj)
		until, err := time.Parse(time.RFC3339, wait["deadline"].(string))
		require.NoError(t, err)
		return time.Until(until) > 30*time.Minute
	}, deadline, 10*time.Millisecond)
	require.Empty(t, beat)
	close(free)
	require.Empty(t, (<-beat)["canceled"])
}

// brittle panics when claims are extended.
type brittle struct{ engine.Engine }

func (brittle) DoAll(context.Context, engine.Orders) (engine.Outcomes, error) { panic("brittle") }

func TestAPanicWhileExtendingClaimsEndsOnlyTheHeartbeat(t *testing.T) {
	s := start(t, func(set *settings) { set.asked = func(e engine.Engine) engine.Engine { return brittle{e} } })
	s.task(queued)
	s.call(500, "POST", "/v1/workers/painter/heartbeat", obj{"claims": held(s.job("paint"))})
	s.get("/v1/workers")
}

func TestAHeartbeatReportsCanceledJobs(t *testing.T) {
	s := start(t)
	id, kept := s.task(queued), s.task(queued)
	jobs := s.jobs(2, obj{"services": []string{"paint"}})
	s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
	beat := s.call(200, "POST", "/v1/workers/painter/heartbeat", obj{"load": 2, "claims": held(jobs...), "extend_ms": 3_600_000})
	lost := jobs[0]
	if lost["task"] != id {
		lost = jobs[1]
	}
	require.Equal(t, []any{lost["id"]}, beat["canceled"])
	wait := s.get("/v1/tasks/" + kept + "/waiting")["waits"].([]any)[0].(obj)
	until, err := time.Parse(time.RFC3339, wait["deadline"].(string))
	require.NoError(t, err)
	require.Greater(t, time.Until(until), 30*time.Minute)

	claims := held(jobs...)
	claims[0]["status_text"], claims[1]["status_text"] = "drying", "drying"
	s.call(200, "POST", "/v1/workers/painter/heartbeat", obj{"claims": claims})
	require.Equal(t, "drying", items(s.get("/v1/tasks/" + kept + "/runs"))[0]["status_text"])

	stolen := []obj{{"job": jobs[1]["id"], "token": "of another claim", "status_text": "stolen"},
		{"job": jobs[0]["id"], "token": "of another claim", "status_text": "stolen"}}
	require.Len(t, s.call(200, "POST", "/v1/workers/painter/heartbeat", obj{"claims": stolen})["canceled"], 2)
	require.Equal(t, "drying", items(s.get("/v1/tasks/" + kept + "/runs"))[0]["status_text"])
	s.refused(400, "body.extend_ms", "POST", "/v1/workers/painter/heartbeat", obj{"extend_ms": 100_000_000})
}

func TestTheLogOfARunningJobIsRead(t *testing.T) {
	s := start(t)
	s.task(queued)
	job := s.job("paint")
	path := "/v1/jobs/" + job["id"].(string) + "/log"
	s.refused(404, "path.job", "GET", path, nil)
	say := func(token any, from int, texts ...string) {
		lines := []obj{}
		for _, text := range texts {
			lines = append(lines, obj{"text": text})
		}
		s.call(200, "POST", "/v1/workers/painter/heartbeat",
			obj{"claims": []obj{{"job": job["id"], "token": token, "lines": lines, "lines_from": from}}})
	}
	say(job["token"], 0, "stirring")
	require.Equal(t, "stirring\n", s.get(path)["content"])
	say(job["token"], 0, "stirring")
	say(job["token"], 0, "stirring", "drying")
	say("of another claim", 2, "stolen")
	require.Equal(t, "stirring\ndrying\n", s.get(path)["content"])
	s.call(200, "POST", "/v1/jobs/"+job["id"].(string)+"/complete",
		obj{"token": job["token"], "lines": []obj{{"text": "drying", "stream": "stdout"},
			{"text": "do", "part": true}, {"text": "ne"}},
			"lines_from": 1, "log": "bye"})
	require.Equal(t, "stirring\ndrying\ndone\nbye", s.get(path)["content"])
}

func TestATooLongNoteIsRefusedBeforeClaimsAreExtended(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	until := func() any { return s.get("/v1/tasks/" + id + "/waiting")["waits"].([]any)[0].(obj)["deadline"] }
	claims := held(s.job("paint"))
	before := until()
	claims[0]["status_text"] = strings.Repeat("ä", 200) // fewer characters than allowed, but more bytes
	s.refused(400, "body.claims[0].note", "POST", "/v1/workers/painter/heartbeat", obj{"claims": claims, "extend_ms": 3_600_000})
	require.Equal(t, before, until())
}

func TestAnUnknownJobInAHeartbeatBlocksNoOtherClaim(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := s.job("paint")
	until := func() any { return s.get("/v1/tasks/" + id + "/waiting")["waits"].([]any)[0].(obj)["deadline"] }
	before := until()
	claims := append([]obj{{"job": "nope", "token": "x", "status_text": "?"},
		{"job": nobodys, "token": "x", "status_text": "?"}}, held(job)...)
	beat := s.call(200, "POST", "/v1/workers/painter/heartbeat", obj{"claims": claims, "extend_ms": 3_600_000})
	require.Equal(t, []any{"nope", nobodys}, beat["canceled"])
	require.NotEqual(t, before, until())
}

func TestClaimedJobsAreGivenBackTogether(t *testing.T) {
	s := start(t)
	s.task(queueList, obj{"list": []int{1, 2}})
	jobs := s.jobs(2, obj{"services": []string{"paint"}})
	claims := append([]obj{{"job": nobodys, "token": "x"}}, held(jobs...)...)
	require.Equal(t, 204, s.send("POST", "/v1/workers/painter/release",
		obj{"claims": claims}).status, "also when a task was deleted meanwhile")
	again := s.jobs(2, obj{"services": []string{"paint"}})
	require.ElementsMatch(t, []any{jobs[0]["id"], jobs[1]["id"]}, []any{again[0]["id"], again[1]["id"]})
	require.Equal(t, 204, s.send("POST", "/v1/workers/painter/release", obj{"claims": held(jobs...)}).status, "they are others' now")
	require.Empty(t, s.call(200, "POST", "/v1/workers/painter/poll", obj{"services": []string{"paint"}})["jobs"])
	s.refused(404, "body.claims", "POST", "/v1/workers/painter/release", obj{"claims": []obj{{"job": "nope", "token": "x"}}})
	s.refused(400, "body.claims", "POST", "/v1/workers/painter/release", obj{"claims": []obj{}})
}

func TestOneJobIsClaimed(t *testing.T) {
	s := start(t)
	id := s.task(queued, obj{"color": "red"})
	waiting := items(s.until("/v1/jobs", func(v obj) bool { return len(items(v)) == 1 }))[0]["id"].(string)
	path := "/v1/jobs/" + waiting
	job := s.call(200, "POST", path+"/claim", obj{"worker": "painter", "token": "mine"})
	require.Equal(t, []any{waiting, id, "red", "mine"}, []any{job["id"], job["task"], job["input"], job["token"]})
	require.Equal(t, "mine", s.call(200, "POST", path+"/claim", obj{"worker": "painter", "token": "mine"})["token"], "again")
	s.refused(409, "path.job", "POST", path+"/claim", obj{"worker": "other"})
	require.Empty(t, s.call(200, "POST", "/v1/workers/other/poll", obj{"services": []string{"paint"}})["jobs"])
	s.call(200, "POST", path+"/complete", obj{"token": "mine", "output": "done"})
	s.ended(id, "completed")
	s.refused(400, "body", "POST", path+"/claim", obj{})
	s.refused(404, "path.job", "POST", "/v1/jobs/nope/claim", obj{"worker": "w"})
}

func TestLargeParamsAreSentOnce(t *testing.T) {
	s := start(t)
	color := strings.Repeat("red", 3000)
	s.task(queueList, obj{"list": []int{1, 2}, "color": color})
	jobs := s.jobs(2, obj{"services": []string{"paint"}})
	require.NotEmpty(t, jobs[0]["params_key"])
	require.Equal(t, jobs[0]["params_key"], jobs[1]["params_key"])
	require.NotContains(t, jobs[0], "params")
	require.NotContains(t, jobs[0], "run_input")
	path := "/v1/jobs/" + jobs[0]["id"].(string)
	require.Equal(t, s.get(path+"/params"), s.get(path+"/params?token="+jobs[0]["token"].(string)))
	s.refused(409, "query.token", "GET", path+"/params?token=lost", nil)
	whole := s.get(path + "/params")
	require.Equal(t, color, whole["params"].(obj)["color"])
	require.Equal(t, color, whole["run_input"].(obj)["color"])
	s.call(200, "POST", path+"/complete", obj{"token": jobs[0]["token"]})
	s.refused(404, "path.job", "GET", path+"/params", nil)
	s.refused(404, "path.job", "GET", "/v1/jobs/nope/params", nil)
}
