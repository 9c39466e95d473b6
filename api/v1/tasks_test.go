package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

func TestATaskIsStartedAndRead(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	started := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"a": 1}, "labels": obj{"customer": "7"}})
	require.Equal(t, true, started["created"])
	require.NotContains(t, started, "task")
	id := started["id"].(string)
	task := s.until("/v1/tasks/"+id, func(v obj) bool { return v["state"] == "running" })
	require.Equal(t, id, task["id"])
	require.Equal(t, slug, task["flow"])
	require.Equal(t, 1.0, task["version"])
	require.Equal(t, false, task["paused"])
	require.Equal(t, "w", task["node"])
	require.Equal(t, obj{"a": 1.0}, task["params"])
	require.Equal(t, obj{}, task["shared"])
	require.Equal(t, obj{"customer": "7"}, task["labels"])
	require.NotContains(t, task, "result")
	require.NotContains(t, task, "ended_at")
	step := task["active"].([]any)[0].(obj)
	require.Equal(t, []any{"w", "wait_event", 1.0}, []any{step["node"], step["kind"], step["visit"]})
	for _, field := range []string{"created_at", "updated_at"} {
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, task[field])
	}
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": obj{"n": 1}})
	task = s.ended(id, "completed")
	require.Equal(t, obj{"go": obj{"n": 1.0}, "got": obj{"n": 1.0}}, task["shared"])
	require.Equal(t, task["shared"], task["result"])
	require.Equal(t, 1.0, task["steps"])
	require.Empty(t, task["active"])
	require.Contains(t, task, "ended_at")
}

func TestAStartMayWaitForTheEnd(t *testing.T) {
	s := start(t)
	slug := s.publish(
		`{"start":"x","result":"out","nodes":{"x":{"exec_type":"local_func","func":"upper","prep":{"input_key":"$params.text"},"post":{"output_key":"out"}}}}`)
	answer := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"text": "hello"}, "wait_ms": 60_000})
	require.Equal(t, "completed", answer["task"].(obj)["state"])
	require.Equal(t, "HELLO", answer["task"].(obj)["result"])
	began := time.Now()
	answer = s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(waits), "wait_ms": 60})
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
	require.Equal(t, "running", answer["task"].(obj)["state"], "the time is up and the task goes on")
	for range 50 { // the end is in the past, so this must not wait for it
		answer = s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(atOnce), "wait_ms": 300_000})
		require.Equal(t, "completed", answer["task"].(obj)["state"])
	}
}

func TestWaitingForTheEndReadsNothing(t *testing.T) {
	var reads atomic.Int64
	s := start(t, func(set *settings) {
		set.wrap = func(store persistence.Store) persistence.Store {
			return faulty.Wrap(store, faulty.Hooks{Call: func(_ context.Context, name string) error {
				if name == "Rows" {
					reads.Add(1)
				}
				return nil
			}})
		}
	})
	task := s.task(waits)
	ended := make(chan obj, 1)
	go func() { ended <- s.get("/v1/tasks/" + task + "?wait_ms=60000") }()
	for range 100 {
		s.call(200, "POST", "/v1/tasks/"+task+"/signal", obj{"key": "note", "value": 1})
	}
	s.call(200, "POST", "/v1/tasks/"+task+"/signal", obj{"key": "go", "value": 1})
	require.Equal(t, "completed", (<-ended)["state"])
	require.Less(t, reads.Load(), int64(20), "the journal has grown by 100 rows")
}

func TestValuesComeBackAsTheyWereSent(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	value := `{"z":12345678901234567890.5,"a":"<&>é\u2028","m":[1e400,{}],"":null}`
	sent := s.send("POST", "/v1/tasks", `{"flow":"`+slug+`","params":`+strings.ReplaceAll(value, ",", " ,\n ")+`}`)
	require.Equal(t, 201, sent.status, "%s", sent.body)
	var started struct{ ID string }
	require.NoError(t, json.Unmarshal(sent.body, &started))
	require.Equal(t, 200, s.send("POST", "/v1/tasks/"+started.ID+"/signal", `{"key":"go","value":`+value+`}`).status)
	text := string(s.send("GET", "/v1/tasks/"+started.ID+"?wait_ms=20000", nil).body)
	require.Contains(t, text, `"params":`+value)
	require.Contains(t, text, `"result":{"go":`+value+`,"got":`+value+`}`)
	for _, route := range []string{"events", "runs", "stream"} {
		require.Contains(t, string(s.send("GET", "/v1/tasks/"+started.ID+"/"+route, nil).body), value)
	}
}

func TestTheSameKeyIsTheSameTask(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	body := func(more obj) obj {
		b := obj{"flow": slug, "params": obj{"a": 1}, "idempotency_key": "k"}
		for name, v := range more {
			b[name] = v
		}
		return b
	}
	first := s.call(201, "POST", "/v1/tasks", body(nil))
	for name, again := range map[string]any{
		"the same":          body(nil),
		"with white space":  `{"flow":"` + slug + `", "params": { "a" : 1 }, "idempotency_key": "k"}`,
		"with its version":  body(obj{"version": 1}),
		"with another wait": body(obj{"wait_ms": 1}),
	} {
		t.Run(name, func(t *testing.T) {
			second := s.call(200, "POST", "/v1/tasks", again)
			require.Equal(t, false, second["created"])
			require.Equal(t, first["id"], second["id"])
		})
	}
	header := s.call(200, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"a": 1}}, "Idempotency-Key", "k")
	require.Equal(t, first["id"], header["id"])
	taken := s.refused(409, "body.idempotency_key", "POST", "/v1/tasks", body(obj{"params": obj{"a": 2}}))
	require.Equal(t, 1, strings.Count(taken["detail"].(string), "use another key"))
	s.refused(409, "body.idempotency_key", "POST", "/v1/tasks", body(obj{"labels": obj{"a": "b"}}))
	s.refused(400, "body.idempotency_key", "POST", "/v1/tasks", body(nil), "Idempotency-Key", "another")
	other := s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(waits), "params": obj{"a": 1}, "idempotency_key": "k"})
	require.NotEqual(t, first["id"], other["id"], "another flow has keys of its own")
}

func TestTheSameKeyIsTheSameTaskAfterAnotherVersion(t *testing.T) {
	s := start(t)
	s.call(201, "PUT", "/v1/flows/f", waits)
	body := obj{"flow": "f", "params": obj{"a": 1}, "idempotency_key": "k"}
	first := s.call(201, "POST", "/v1/tasks", body)
	s.call(201, "PUT", "/v1/flows/f", atOnce)
	require.Equal(t, first["id"], s.call(200, "POST", "/v1/tasks", body)["id"])
	s.refused(409, "body.idempotency_key", "POST", "/v1/tasks", obj{"flow": "f", "params": obj{"a": 2}, "idempotency_key": "k"})
	s.refused(409, "body.idempotency_key", "POST", "/v1/tasks",
		obj{"flow": "f", "version": 2, "params": obj{"a": 1}, "idempotency_key": "k"})
}

func TestManyStartsWithOneKeyAreOneTask(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	ids, created := make([]any, 20), make([]any, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			sent := s.send("POST", "/v1/tasks", obj{"flow": slug, "idempotency_key": "k"})
			var v obj
			if json.Unmarshal(sent.body, &v) == nil {
				ids[i], created[i] = v["id"], v["created"]
			}
		})
	}
	all.Wait()
	first := 0
	for i := range ids {
		require.Equal(t, ids[0], ids[i])
		if created[i] == true {
			first++
		}
	}
	require.Equal(t, 1, first)
	require.Len(t, items(s.get("/v1/tasks?flow="+slug)), 1)
}

func TestAStartIsRefusedWithAReason(t *testing.T) {
	s := start(t)
	slug := s.publish(atOnce)
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		status int
		where  string
		body   any
	}{
		"an unknown flow":          {404, "body.flow", obj{"flow": "nope"}},
		"an unknown version":       {404, "body.version", obj{"flow": slug, "version": 7}},
		"a version below zero":     {400, "body.version", obj{"flow": slug, "version": -1}},
		"no flow":                  {400, "body", obj{}},
		"an unknown field":         {400, "body.parms", obj{"flow": slug, "parms": obj{}}},
		"params that are a list":   {400, "body.params", obj{"flow": slug, "params": []int{1}}},
		"params over the limit":    {422, "body.params", obj{"flow": slug, "params": obj{"a": strings.Repeat("x", 2<<20)}}},
		"a label that is a number": {400, "body.labels.a", obj{"flow": slug, "labels": obj{"a": 1}}},
		"a label with a colon":     {400, "body.labels", obj{"flow": slug, "labels": obj{"a:b": "c"}}},
		"a long label":             {400, "body.labels", obj{"flow": slug, "labels": obj{"a": long}}},
		"a label out of control":   {400, "body.labels", obj{"flow": slug, "labels": obj{"a": "b\x00"}}},
		"a long key":               {400, "body.idempotency_key", obj{"flow": slug, "idempotency_key": long}},
		"a wait that is no wait":   {400, "body.wait_ms", obj{"flow": slug, "wait_ms": -1}},
		"a body that is no JSON":   {400, "body", "{"},
		"a body that is a list":    {400, "body", "[]"},
		"two values in a body":     {400, "body", `{"flow":"` + slug + `"} {}`},
		"a body that is not there": {400, "", ""},
		"a body over the limit":    {413, "body", strings.Repeat(" ", 8<<20) + "{}"},
	} {
		t.Run(name, func(_ *testing.T) { s.refused(tt.status, tt.where, "POST", "/v1/tasks", tt.body) })
	}
	require.Empty(t, items(s.get("/v1/tasks")))
}

func TestABodyIsJSONUnlessItSaysOtherwise(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	const curl = "application/x-www-form-urlencoded" // the type that curl sends for any body
	for _, kind := range []string{"", curl, curl + "; charset=UTF-8", "application/json; charset=utf-8", "application/vnd.x+json"} {
		id := s.call(201, "POST", "/v1/tasks", `{"flow":"`+slug+`"}`, "Content-Type", kind)["id"].(string)
		s.call(200, "POST", "/v1/tasks/"+id+"/signal", `{"key":"go","value":1}`, "Content-Type", kind)
		s.ended(id, "completed")
	}
	p := s.refused(400, "body", "POST", "/v1/tasks", "flow="+slug, "Content-Type", curl)
	require.Contains(t, p["hint"], "send a JSON object")
	p = s.refused(415, "header.Content-Type", "POST", "/v1/tasks", "flow: "+slug, "Content-Type", "application/yaml")
	require.Contains(t, p["hint"], "send application/json")
}

func TestSeveralFaultsAreReportedTogether(t *testing.T) {
	s := start(t)
	p := s.refused(400, "body.version", "POST", "/v1/tasks", obj{"flow": "f", "version": "x", "y": 1})
	require.Equal(t, []any{"body.version", "body.y"}, values(obj{"items": p["errors"]}, "field"))
	p = s.refused(400, "query.odd", "GET", "/v1/tasks?odd=1", nil)
	require.Contains(t, p["hint"], "created_from")
	require.Equal(t, "invalid", p["code"])
}

func TestAnInvalidTimeIsReportedInWordsOfTheAPI(t *testing.T) {
	s := start(t)
	for _, query := range []string{"/v1/tasks?created_from=yesterday",
		"/v1/tasks?created_from=2026-01-31", "/v1/tasks?created_from=2026-01-31T15:04:05"} {
		p := s.refused(400, "query.created_from", "GET", query, nil)
		require.Equal(t, "this is not a time", p["message"])
		require.Contains(t, p["hint"], "2026-01-31T15:04:05Z")
	}
}

func TestAnInvalidNumberIsReportedInWordsOfTheAPI(t *testing.T) {
	s := start(t)
	for where, tt := range map[string][2]string{
		"body.version":             {"/v1/tasks", `{"flow":"f","version":9223372036854775808}`},
		"body.starts.version":      {"/v1/tasks/starts", `{"starts":[{"flow":"f","version":-0.0}]}`},
		"body.filter.duration_max": {"/v1/tasks/bulk", `{"action":"pause","filter":{"duration_max":1e308}}`},
		"body.lines_from":          {"/v1/jobs/j/complete", `{"token":"t","lines_from":1e30}`},
	} {
		p := s.refused(400, where, "POST", tt[0], tt[1])
		require.Equal(t, []any{"the number is too large, or not a whole number",
			"send a whole number of at most 18 digits, without a decimal point or an exponent"},
			[]any{p["message"], p["hint"]})
	}
}

func TestTasksArePausedAndResumed(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	paused := s.call(200, "POST", "/v1/tasks/"+id+"/pause", nil)
	require.Equal(t, true, paused["paused"])
	task := s.get("/v1/tasks/" + id)
	require.Contains(t, task, "paused_at")
	require.Equal(t, []any{id}, values(s.get("/v1/tasks?state=paused"), "id"))
	require.Equal(t, "resume", s.get("/v1/tasks/" + id + "/waiting")["waits"].([]any)[0].(obj)["kind"])
	s.refused(409, "path.task", "POST", "/v1/tasks/"+id+"/pause", nil)
	require.Equal(t, false, s.call(200, "POST", "/v1/tasks/"+id+"/resume", nil)["paused"])
	require.NotContains(t, s.get("/v1/tasks/"+id), "paused_at")
	s.refused(409, "path.task", "POST", "/v1/tasks/"+id+"/resume", nil)
	require.Equal(t, "canceled", s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)["state"])
	require.Equal(t, "canceled", s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)["state"], "what has ended stays as it is")
	s.refused(409, "path.task", "POST", "/v1/tasks/"+id+"/pause", nil)
}

func TestACommandMayBeSentAgain(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	for _, header := range []string{"Request-Id", "Idempotency-Key"} {
		s.call(200, "POST", "/v1/tasks/"+id+"/pause", nil, header, "r-"+header)
		s.call(200, "POST", "/v1/tasks/"+id+"/pause", nil, header, "r-"+header)
		s.call(200, "POST", "/v1/tasks/"+id+"/resume", nil, header, "r-"+header)
		s.call(200, "POST", "/v1/tasks/"+id+"/pause", nil, header, "r-"+header)
		require.Equal(t, false, s.get("/v1/tasks/" + id)["paused"], "the pause had its effect already")
	}
	s.refused(400, "header.Idempotency-Key", "POST", "/v1/tasks/"+id+"/pause", nil, "Request-Id", "a", "Idempotency-Key", "b")
}

func TestUnknownTasksAreReported(t *testing.T) {
	s := start(t)
	for _, route := range []string{"POST cancel", "POST pause", "POST resume", "GET events",
		"GET runs", "GET waiting", "GET stream", "GET "} {
		method, name, _ := strings.Cut(route, " ")
		t.Run(route, func(_ *testing.T) {
			s.refused(404, "path.task", method, strings.TrimSuffix("/v1/tasks/"+unknownKey+"/"+name, "/"), nil)
		})
	}
	s.refused(404, "path.task", "POST", "/v1/tasks/"+unknownKey+"/signal", obj{"key": "k"})
	s.refused(404, "path.task", "GET", "/v1/tasks/"+unknownKey+"?wait_ms=5", nil)
}

func TestSignalsAreRefusedWithAReason(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	for name, tt := range map[string]struct {
		status int
		where  string
		body   any
	}{
		"a key of the engine": {400, "body", obj{"key": "_rt", "value": 1}},
		"no key":              {400, "body", obj{"value": 1}},
		"an empty key":        {400, "body.key", obj{"key": ""}},
		"a value too large":   {422, "body", obj{"key": "k", "value": strings.Repeat("x", 2<<20)}},
	} {
		t.Run(name, func(_ *testing.T) { s.refused(tt.status, tt.where, "POST", "/v1/tasks/"+id+"/signal", tt.body) })
	}
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "k"})
	require.Equal(t, obj{"k": nil}, s.get("/v1/tasks/" + id)["shared"])
}

func TestTasksAreSearched(t *testing.T) {
	s := start(t)
	one, other := s.publish(waits), s.publish(waits)
	begin := func(slug string, labels obj) string {
		return s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "labels": labels})["id"].(string)
	}
	a := begin(one, obj{"team": "blue", "at": "12:30"})
	b := begin(one, obj{"team": "red"})
	c := begin(other, obj{"team": "blue"})
	s.call(200, "POST", "/v1/tasks/"+b+"/cancel", nil)
	s.call(200, "POST", "/v1/tasks/"+c+"/signal", obj{"key": "go", "value": 1})
	s.ended(c, "completed")
	s.until("/v1/tasks?state=running", func(v obj) bool { return len(items(v)) == 1 })
	made := func(id string) string { return s.get("/v1/tasks/" + id)["created_at"].(string) }
	for query, want := range map[string][]any{
		"":                                         {c, b, a},
		"flow=" + one:                              {b, a},
		"id_prefix=" + a:                           {a},
		"id_prefix=" + a[:8] + "&flow=" + other:    {c},
		"id_prefix=nope":                           {},
		"state=canceled":                           {b},
		"state=cancelled":                          {b},
		"state=success":                            {c},
		"state=waiting_queue":                      {a},
		"state=started,cancelled":                  {b, a},
		"state=completed&state=canceled":           {c, b},
		"state=paused":                             {},
		"label=team:blue":                          {c, a},
		"label=team:blue&label=at:12:30":           {a},
		"label=team:green":                         {},
		"flow=" + one + "&label=team:blue":         {a},
		"created_to=" + made(a):                    {},
		"created_to=2100-01-01T00:00:00Z":          {c, b, a},
		"created_from=" + made(a):                  {c, b, a},
		"created_from=2100-01-01T00:00:00%2B01:00": {},
	} {
		t.Run(query, func(t *testing.T) { require.Equal(t, want, values(s.get("/v1/tasks?"+query), "id")) })
	}
	for query, where := range map[string]string{
		"state=odd":            "query.state",
		"state=paused,running": "query.state",
		"label=team":           "query.label",
		"label=a:1&label=a:2":  "query.label",
		"created_from=now":     "query.created_from",
		"limit=0":              "query.limit",
		"limit=501":            "query.limit",
		"limit=x":              "query.limit",
		"cursor=%21":           "query.cursor",
		"offset=1":             "query.offset",
	} {
		t.Run(query, func(_ *testing.T) { s.refused(400, where, "GET", "/v1/tasks?"+query, nil) })
	}
	s.refused(404, "query.flow", "GET", "/v1/tasks?flow=nope", nil)
}

func TestTasksAreListedWhileTheyAreStarted(t *testing.T) {
	s := start(t)
	slug := s.publish(atOnce)
	begin := func() any { return s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"] }
	var want []any
	for range 25 {
		want = append([]any{begin()}, want...)
	}
	var got []any
	for cursor := ""; ; {
		page := s.get("/v1/tasks?limit=4&cursor=" + cursor)
		got = append(got, values(page, "id")...)
		begin()
		if page["next"] == nil {
			break
		}
		cursor = page["next"].(string)
	}
	require.Equal(t, want, got, "nothing is missing and nothing is there twice")
}

func TestAListGoesOnWhenItsLastTaskIsDeleted(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	var ids []any
	for range 12 { // some of them in the same millisecond
		ids = append([]any{s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"]}, ids...)
	}
	page := s.get("/v1/tasks?limit=2")
	require.Equal(t, ids[:2], values(page, "id"))
	s.call(200, "POST", fmt.Sprintf("/v1/tasks/%s/cancel", ids[1]), nil)
	deleted, err := s.store.DeleteEnded(t.Context(), time.Now().Add(time.Hour).UnixMilli(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, deleted)
	require.Equal(t, ids[2:], values(s.get("/v1/tasks?limit=20&cursor="+page["next"].(string)), "id"))
}
