package v1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// claim claims a job like a poller.
func (s *server) claim(service string) engine.Claimed {
	s.Helper()
	got, err := s.engine.Poll(s.Context(), engine.Poll{Worker: "painter", Services: []string{service}, Wait: deadline})
	require.NoError(s, err)
	require.Len(s, got, 1)
	return got[0]
}

// endJob ends a job like a poller.
func (s *server) endJob(job string, r flow.Report) error {
	order, err := engine.Completing(job, r)
	require.NoError(s, err)
	return s.order(order.Task, order.Command)
}

func (s *server) order(task string, cmd flow.Command) error {
	_, err := s.engine.Do(s.Context(), engine.Order{Task: task, Command: cmd})
	return err
}

func TestAJobIsReadFromTheJournal(t *testing.T) {
	s := start(t)
	for name, tt := range map[string]struct {
		report flow.Report
		state  string
	}{
		"it went well": {flow.Report{Output: []byte(`"done"`)}, "completed"},
		"it failed":    {flow.Report{Error: "no paint"}, "failed"},
		"it timed out": {flow.Report{Error: "too slow", TimedOut: true}, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			id := s.task(queued, obj{"color": "red"})
			page := s.until("/v1/jobs?service=paint", func(v obj) bool { return len(items(v)) == 1 })
			waiting := items(page)[0]
			require.Equal(t, []any{id, "paint", "pending"}, []any{waiting["task"], waiting["service"], waiting["state"]})
			path := "/v1/jobs/" + waiting["id"].(string)
			require.Equal(t, "pending", s.get(path)["state"])
			for _, prefix := range []string{"q-", "run-"} { // the ids that pollers use
				require.Equal(t, waiting["id"], s.get("/v1/jobs/" + prefix + waiting["id"].(string))["id"])
			}
			claimed := s.claim("paint")
			require.Equal(t, waiting["id"], claimed.Job.ID())
			require.Equal(t, []any{"claimed", "painter"}, []any{s.get(path)["state"], s.get(path)["worker"]})
			held := items(s.get("/v1/jobs"))[0]
			require.Equal(t, []any{"claimed", "painter"}, []any{held["state"], held["worker"]})
			require.NoError(t, s.endJob(claimed.Job.ID(), tt.report))
			job := s.until(path, func(v obj) bool { return v["state"] != "claimed" })
			require.Equal(t, []any{tt.state, claimed.Job.Key()}, []any{job["state"], job["key"]})
			require.Equal(t, []any{id, "q", "paint", "red", true},
				[]any{job["task"], job["node"], job["service"], job["input"], job["queue"]})
			require.Contains(t, job, "ended_at")
			if tt.report.Error != "" {
				require.Equal(t, tt.report.Error, job["error"])
			}
			s.until("/v1/jobs", func(v obj) bool { return len(items(v)) == 0 })
		})
	}
}

func TestOutputOfAJobIsReadAsLog(t *testing.T) {
	s := start(t)
	id := s.task(queued, obj{"color": "red"})
	claimed := s.claim("paint")
	job := claimed.Job.ID()
	s.refused(404, "path.job", "GET", "/v1/jobs/"+job+"/log", nil)
	chunk := persistence.LogChunk{Task: id, Job: job, Source: "painter", Number: 1,
		Lines: []persistence.LogLine{{Stream: "log", Text: "first coat\n"}}}
	require.NoError(t, s.store.AppendLog(t.Context(), []persistence.LogChunk{chunk}, 1000))
	require.NoError(t, s.endJob(job, flow.Report{Output: []byte(`1`), Log: true}))
	s.ended(id, "completed")
	require.Equal(t, true, items(s.get("/v1/tasks/" + id + "/runs"))[0]["log"])
	require.Equal(t, obj{"content": "first coat\n"}, s.get("/v1/jobs/"+job+"/log"))
	s.refused(404, "path.job", "GET", "/v1/jobs/none/log", nil)
}

func TestAClaimIsGivenBack(t *testing.T) {
	s := start(t)
	s.task(queued)
	claimed := s.claim("paint")
	path := "/v1/jobs/" + claimed.Job.ID()
	s.refused(400, "body.token", "POST", path+"/release", obj{"token": ""})
	kept := s.call(200, "POST", path+"/release", obj{"token": "of another claim"})
	require.Equal(t, []any{"claimed", "painter"}, []any{kept["state"], kept["worker"]})
	back := s.call(200, "POST", path+"/release", obj{"token": claimed.Token})
	require.Equal(t, []any{"pending", nil}, []any{back["state"], back["worker"]})
	again := s.claim("paint")
	require.Equal(t, claimed.Job.ID(), again.Job.ID())
	s.refused(404, "path.job", "POST", "/v1/jobs/nope/release", obj{"token": "x"})
}

func TestAWithdrawnJobHasFailed(t *testing.T) {
	s := start(t)
	id := s.task(queued)
	job := items(s.until("/v1/jobs", func(v obj) bool { return len(items(v)) == 1 }))[0]["id"].(string)
	s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
	v := s.get("/v1/jobs/" + job)
	require.Equal(t, []any{"failed", "canceled"}, []any{v["state"], v["error"]})
}

func TestUnknownJobsAreReported(t *testing.T) {
	s := start(t)
	id := s.task(atOnce)
	for _, job := range []string{"x", id, flow.JobID("task-nope", flow.Address{Node: "q", Visit: 1, Attempt: 1}),
		flow.JobID(id, flow.Address{Node: "q", Visit: 1, Attempt: 1}), flow.JobID(id, flow.Address{Node: "x", Visit: 1, Attempt: 1})} {
		s.refused(404, "path.job", "GET", "/v1/jobs/"+job, nil)
	}
}

func TestAPolledJobNamesTheLabelsItAsksFor(t *testing.T) {
	onBothStores(t, func(s *server) {
		service := s.unique("cut")
		slug := s.publish(`{"start":"p","nodes":{"p":{"exec_type":"queue","service":"` + service + `","labels":["gpu","eu"]}}}`)
		s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
		s.until("/v1/jobs?service="+service, func(v obj) bool { return len(items(v)) == 1 })
		plain := s.call(200, "POST", "/v1/workers/plain/poll", obj{"services": []string{service}, "labels": []string{"gpu"}, "max": 1})
		require.Empty(s, plain["jobs"], "it lacks a label")
		got := s.call(200, "POST", "/v1/workers/w/poll",
			obj{"services": []string{service}, "labels": []string{"ssd", "eu", "gpu"}, "max": 1, "wait_ms": 60_000})
		require.Len(s, got["jobs"], 1)
		require.ElementsMatch(s, []any{"gpu", "eu"}, got["jobs"].([]any)[0].(obj)["labels"])
	})
}

func TestQueuesAreListedByService(t *testing.T) {
	s := start(t)
	slug := s.publish(
		`{"start":"p","nodes":{"p":{"kind":"parallel","exec_type":"queue","parallel_mode":"concurrent","parallel_services":["cut","paint","sand"],"post":{"output_key":"out"}}}}`)
	for range 3 {
		s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
	}
	s.until("/v1/jobs", func(v obj) bool { return len(items(v)) == 9 })
	queues := s.get("/v1/queues")
	require.Equal(t, []any{"cut", "paint", "sand"}, values(queues, "service"))
	require.Equal(t, []any{3.0, 3.0, 3.0}, values(queues, "waiting"))
	require.NotEmpty(t, items(queues)[0]["oldest_at"])
	page := s.get("/v1/queues?limit=2")
	require.Equal(t, []any{"cut", "paint"}, values(page, "service"))
	require.Equal(t, []any{"sand"}, values(s.get("/v1/queues?limit=2&cursor="+page["next"].(string)), "service"))
	var seen []any
	for next := ""; ; {
		page := s.get("/v1/jobs?limit=2&service=cut&service=sand&cursor=" + next)
		seen = append(seen, values(page, "service")...)
		if page["next"] == nil {
			break
		}
		next = page["next"].(string)
	}
	require.ElementsMatch(t, []any{"cut", "cut", "cut", "sand", "sand", "sand"}, seen)
	first := items(s.get("/v1/jobs?service=cut"))[0]
	job := s.get("/v1/jobs/" + first["id"].(string))
	require.Equal(t, []any{"cut", "cut"}, []any{job["service"], job["branch"]})
}

func TestWorkersAreListed(t *testing.T) {
	s := start(t)
	require.NoError(t, s.registry.Register(t.Context(),
		persistence.Worker{ID: "w1", URL: "http://127.0.0.1:1", Services: []string{"paint"}}))
	list := items(s.get("/v1/workers"))
	require.Equal(t, []any{"here", "local", "online"}, []any{list[0]["id"], list[0]["type"], list[0]["state"]})
	require.Equal(t, []any{"w1", "push", "online", []any{"paint"}},
		[]any{list[1]["id"], list[1]["type"], list[1]["state"], list[1]["services"]})
	require.NotEmpty(t, list[1]["last_heartbeat_at"])
}

func TestWorkersAreListedInPages(t *testing.T) {
	s := start(t)
	for _, id := range []string{"ab", "aa", "b"} {
		require.NoError(t, s.registry.Register(t.Context(), persistence.Worker{ID: id, URL: "queue",
			Type: "async", Services: []string{"of " + id, "all"}}))
	}
	var seen []any
	for path := "/v1/workers?limit=1"; path != ""; {
		page := s.get(path)
		seen = append(seen, values(page, "id")...)
		path = ""
		if next, ok := page["next"].(string); ok {
			path = "/v1/workers?limit=1&cursor=" + next
		}
	}
	require.Equal(t, []any{"here", "ab", "aa", "b"}, seen)
	require.Equal(t, []any{"ab", "aa"}, values(s.get("/v1/workers?id_prefix=a"), "id"))
	require.Equal(t, []any{"b"}, values(s.get("/v1/workers?service=of+b"), "id"))
	require.Empty(t, values(s.get("/v1/workers?state=offline"), "id"))
	require.Equal(t, "aa", s.get("/v1/workers/aa")["id"])
	s.refused(404, "path.worker", "GET", "/v1/workers/a", nil)

	first := s.get("/v1/workers?limit=2&service=all")
	require.NoError(t, s.registry.Deregister(t.Context(), "aa")) // the page ended with it
	require.Contains(t, values(s.get("/v1/workers?limit=2&service=all&cursor="+first["next"].(string)), "id"), "b")
}

func TestAWorkerIsForgotten(t *testing.T) {
	s := start(t)
	require.NoError(t, s.registry.Register(t.Context(), persistence.Worker{ID: "w 1/2", URL: "queue", Type: "async"}))
	require.Equal(t, 204, s.send("DELETE", "/v1/workers/w%201%2F2", nil).status)
	require.Equal(t, []any{"here"}, values(s.get("/v1/workers"), "id"))
	s.refused(404, "path.worker", "DELETE", "/v1/workers/w%201%2F2", nil)
	s.refused(405, "method", "POST", "/v1/workers/w1", nil)
}

func TestTheMemberReportsItsVersionAndStore(t *testing.T) {
	s := start(t)
	info := s.get("/v1/info")
	now, err := time.Parse(time.RFC3339, info["store_time"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), now, time.Minute)
	delete(info, "store_time")
	require.Equal(t, obj{"version": "1.2.3", "store": "sqlite", "member": "here"}, info)
}

func TestUnknownRoutesAreReported(t *testing.T) {
	s := start(t)
	s.refused(404, "path", "GET", "/v1/nope", nil)
	s.refused(404, "path", "GET", "/v1/", nil)
	s.refused(404, "path", "POST", "/v1/tasks/x/explode", nil)
	s.refused(405, "method", "DELETE", "/v1/tasks/x", nil)
	require.Equal(t, "GET, POST", s.send("PUT", "/v1/tasks", "{}").header.Get("Allow"))
}
