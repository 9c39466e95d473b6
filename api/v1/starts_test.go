package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
)

// overloaded is an engine that starts a limited number of tasks, and lets other starts wait as long
// as their callers do.
type overloaded struct {
	engine.Engine
	starts, asked atomic.Int64
}

func (o *overloaded) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	o.asked.Add(1)
	if o.starts.Add(-1) >= 0 {
		return o.Engine.StartTask(ctx, n)
	}
	<-ctx.Done()
	return engine.Started{}, ctx.Err()
}

func overload(o *overloaded) func(*settings) {
	return func(set *settings) {
		set.begin = time.Second
		set.asked = func(e engine.Engine) engine.Engine {
			o.Engine = e
			return o
		}
	}
}

func TestManyStartsAreAnsweredUnderOverload(t *testing.T) {
	o := &overloaded{}
	o.starts.Store(5)
	s := start(t, overload(o))
	slug := s.publish(waits)
	var starts []any
	for range 300 {
		starts = append(starts, obj{"flow": slug})
	}
	var began, untried, late int
	for _, item := range items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": starts})) {
		p, refused := item["problem"].(obj)
		switch {
		case !refused:
			require.Equal(s, true, item["created"])
			began++
		case strings.Contains(p["detail"].(string), "the task was not started"):
			require.Equal(s, 429.0, p["status"])
			untried++
		default:
			require.Equal(s, 503.0, p["status"])
			late++
		}
	}
	require.LessOrEqual(s, late, 128, "more do not begin at the same time")
	require.GreaterOrEqual(s, untried, 300-5-128)
	require.Equal(s, 300, began+late+untried)
	require.EqualValues(s, began, s.get("/v1/tasks/count?flow=" + slug)["count"])
}

func TestManyStartsEndWithTheirCaller(t *testing.T) {
	o := &overloaded{}
	// runs after the cleanup of the server
	t.Cleanup(func() { require.EqualValues(t, 128, o.asked.Load(), "the server has ended") })
	s := start(t, overload(o), func(set *settings) { set.begin = time.Hour })
	var starts []any
	slug := s.publish(waits)
	for range 300 {
		starts = append(starts, obj{"flow": slug})
	}
	text, err := json.Marshal(obj{"starts": starts})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", s.base+"/v1/tasks/starts", strings.NewReader(string(text)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	over := make(chan error, 1)
	go func() {
		_, err := s.http.Do(req)
		over <- err
	}()
	require.Eventually(t, func() bool { return o.asked.Load() == 128 }, deadline, time.Millisecond)
	leave()
	require.ErrorIs(t, <-over, context.Canceled)
}

func TestABackfillUnderOverloadReportsItsProgress(t *testing.T) {
	o := &overloaded{}
	o.starts.Store(2)
	s := start(t, overload(o))
	s.call(201, "PUT", "/v1/schedules/daily", obj{"flow": s.publish(waits), "cron": "0 0 * * *"})
	ask := obj{"from": "2025-01-01T00:00:00Z", "to": "2025-01-06T00:00:00Z"}
	require.Contains(s, s.call(429, "POST", "/v1/schedules/daily/backfill", ask)["detail"], "2 of 5 slots have their tasks")
	o.starts.Store(100)
	filled := s.call(200, "POST", "/v1/schedules/daily/backfill", ask)
	require.Len(s, filled["items"], 5)
	require.Equal(s, 3.0, filled["created"])
}

func TestManyTasksAreStartedAtOnce(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		var starts []any
		for i := range 300 {
			starts = append(starts, obj{"flow": slug, "params": obj{"n": i}, "labels": obj{"n": fmt.Sprint(i)}})
		}
		started := items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": starts}))
		require.Len(s, started, 300)
		for i, item := range started {
			require.Equal(s, true, item["created"])
			require.NotContains(s, item, "problem")
			if i%50 == 0 {
				task := s.get("/v1/tasks/" + item["id"].(string))
				require.Equal(s, obj{"n": float64(i)}, task["params"], "each is in its place")
			}
		}
		require.Equal(s, 300.0, s.get("/v1/tasks/count?flow=" + slug)["count"])
	})
}

func TestOfManyStartsEachIsRefusedByItself(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		started := items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": []any{
			obj{"flow": slug},
			obj{"flow": "nobody's"},
			obj{"flow": slug, "params": []any{1}},
			obj{"flow": slug, "wait_ms": 5},
			obj{"flow": slug, "dry_run": true},
			obj{"flow": slug, "labels": obj{"a:b": "c"}},
			obj{"flow": slug},
		}}))
		var told []any
		for _, item := range started {
			if p, ok := item["problem"].(obj); ok {
				require.NotContains(s, item, "id")
				require.Contains(s, p["detail"], p["field"])
				told = append(told, fmt.Sprint(p["status"], " ", p["field"]))
			} else {
				told = append(told, item["created"])
			}
		}
		require.Equal(s, []any{true, "404 body.starts[1].flow", "400 body.starts[2].params",
			"400 body.starts[3].wait_ms", "400 body.starts[4].dry_run", "400 body.starts[5].labels",
			true}, told)
		require.Equal(s, 2.0, s.get("/v1/tasks/count?flow=" + slug)["count"])
		s.refused(400, "body.starts", "POST", "/v1/tasks/starts", obj{"starts": []any{}})
	})
}

func TestManyStartsMayBeSentAgain(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		first := []any{obj{"flow": slug, "params": obj{"n": 0}}, obj{"flow": slug, "params": obj{"n": 1}, "idempotency_key": "mine"}}
		ids := func(starts []any, created ...any) (all []any) {
			for i, item := range items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": starts}, "Idempotency-Key", "once")) {
				require.Equal(s, created[i], item["created"])
				all = append(all, item["id"])
			}
			return all
		}
		made := ids(first, true, true)
		require.Equal(s, made, ids(append(first, obj{"flow": slug}), false, false, true)[:2])
		require.Equal(s, made[1], s.call(200, "POST", "/v1/tasks",
			obj{"flow": slug, "params": obj{"n": 1}, "idempotency_key": "mine"})["id"])
		require.Equal(s, 3.0, s.get("/v1/tasks/count?flow=" + slug)["count"])
		other := items(s.call(200, "POST", "/v1/tasks/starts",
			obj{"starts": []any{obj{"flow": slug, "params": obj{"n": 7}}}}, "Idempotency-Key", "once"))
		require.Equal(s, "body.starts[0].idempotency_key", other[0]["problem"].(obj)["field"])
	})
}
