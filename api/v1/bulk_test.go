package v1_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/wire"
)

const approval = `{"start":"ask","nodes":{"ask":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`

func bulkOf(done obj) []any {
	return []any{done["tasks"], done["changed"], done["unchanged"], done["failed"]}
}

func TestManyTasksAreGivenACommandAtOnce(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(approval)
		var ids []string
		for i := range 5 {
			ids = append(ids, s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "labels": obj{"part": fmt.Sprint(i % 2)}})["id"].(string))
		}
		bulk := func(request string, body obj) obj {
			return s.call(200, "POST", "/v1/tasks/bulk", body, "Request-Id", request)
		}
		all := obj{"flow": []string{slug}}
		require.Equal(s, 5.0, bulk("", obj{"action": "pause", "filter": all, "dry_run": true})["tasks"])
		require.Empty(s, items(s.get("/v1/tasks?state=paused&flow="+slug)), "a dry run does nothing")

		done := bulk("a", obj{"action": "pause", "filter": obj{"flow": []string{slug}, "label": []string{"part:0"}}, "limit": 2})
		require.Equal(s, []any{2.0, 2.0, 0.0, 0.0}, bulkOf(done))
		rest := obj{"action": "pause", "filter": obj{"flow": []string{slug},
			"label": []string{"part:0"}}, "limit": 2, "cursor": done["next"]}
		done = bulk("a", rest)
		require.Equal(s, []any{1.0, 1.0, 0.0, 0.0}, bulkOf(done))
		require.NotContains(s, done, "next")
		require.Len(s, items(s.get("/v1/tasks?state=paused&flow="+slug)), 3)

		done = bulk("b", obj{"action": "pause", "ids": append(ids, "task-none")})
		require.Equal(s, []any{6.0, 2.0, 0.0, 4.0}, bulkOf(done))
		require.Equal(s, []any{"conflict", "conflict", "conflict", "not_found"}, values(obj{"items": done["failures"]}, "code"))
		require.Equal(s, "there is no task \"task-none\"", values(obj{"items": done["failures"]}, "message")[3])
		require.Equal(s, []any{5.0, 0.0, 2.0, 3.0},
			bulkOf(bulk("b", obj{"action": "pause", "ids": ids})), "the same request changes nothing again")

		require.Equal(s, []any{5.0, 5.0, 0.0, 0.0}, bulkOf(bulk("", obj{"action": "resume", "filter": all})))
		require.Equal(s, []any{5.0, 5.0, 0.0, 0.0}, bulkOf(bulk("", obj{"action": "cancel", "force": true, "filter": all})))
		require.Equal(s, []any{5.0, 0.0, 5.0, 0.0}, bulkOf(bulk("", obj{"action": "cancel", "ids": ids})), "what has ended stays as it is")
		require.Equal(s, []any{0.0, 0.0, 0.0, 0.0}, bulkOf(bulk("", obj{"action": "retry", "filter": all})), "none has failed")
		require.Equal(s, []any{5.0, 0.0, 0.0, 5.0},
			bulkOf(bulk("", obj{"action": "retry", "filter": obj{"flow": []string{slug},
				"state": []string{"canceled"}}})))
	})
}

func TestFailedTasksAreRetriedOnceByTheSameRequest(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"x","nodes":{"x":{"func":"nobody_knows"}}}`)
		var ids []string
		for range 3 {
			ids = append(ids, s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string))
		}
		ended := func() {
			for _, id := range ids {
				s.ended(id, "failed")
			}
		}
		ended()
		again := obj{"action": "retry", "filter": obj{"flow": []string{slug}}}
		require.Equal(s, []any{3.0, 3.0, 0.0, 0.0}, bulkOf(s.call(200, "POST", "/v1/tasks/bulk", again, "Idempotency-Key", "k")))
		ended()
		require.Equal(s, []any{3.0, 0.0, 3.0, 0.0}, bulkOf(s.call(200, "POST", "/v1/tasks/bulk", again, "Idempotency-Key", "k")))
		require.Equal(s, []any{3.0, 3.0, 0.0, 0.0}, bulkOf(s.call(200, "POST", "/v1/tasks/bulk", again)))
		ended()
	})
}

func TestABulkNeedsEitherAFilterOrIDs(t *testing.T) {
	s := start(t)
	s.publish(approval)
	for name, c := range map[string]struct {
		status int
		where  string
		body   obj
	}{
		"nothing":            {400, "body.filter", obj{"action": "cancel"}},
		"an empty filter":    {400, "body.filter", obj{"action": "cancel", "filter": obj{}}},
		"an id twice":        {400, "body.ids", obj{"action": "cancel", "ids": []string{"a", "b", "a"}}},
		"an id that is none": {400, "body.ids[1]", obj{"action": "cancel", "ids": []any{"a", obj{"b": 1}}}},
		"an empty list": {400, "body.filter",
			obj{"action": "cancel", "filter": obj{"state": []string{}}}},
		"no labels": {400, "body.filter",
			obj{"action": "cancel", "filter": obj{"label": []string{}}, "dry_run": true}},
		"an empty word": {400, "body.filter",
			obj{"action": "cancel", "filter": obj{"state": []string{""}, "waiting_for": []string{","}}}},
		"filter and ids":       {400, "body.filter", obj{"action": "cancel", "filter": obj{"node": "x"}, "ids": []string{"a"}}},
		"a flow of nobody":     {404, "body.filter.flow", obj{"action": "cancel", "filter": obj{"flow": []string{"nobody"}}}},
		"a state of nothing":   {400, "body.filter.state", obj{"action": "cancel", "filter": obj{"state": []string{"tired"}}}},
		"a label without text": {400, "body.filter.label", obj{"action": "cancel", "filter": obj{"label": []string{"x"}}}},
		"a cursor of nobody":   {400, "body.cursor", obj{"action": "cancel", "filter": obj{"node": "x"}, "cursor": "!"}},
		"a cursor of ids":      {400, "body.cursor", obj{"action": "cancel", "ids": []string{"a"}, "cursor": "x"}},
		"a gentle pause":       {400, "body.action", obj{"action": "pause", "graceful": true, "ids": []string{"a"}}},
		"gently and by force":  {400, "body.force", obj{"action": "cancel", "graceful": true, "force": true, "ids": []string{"a"}}},
	} {
		t.Run(name, func(_ *testing.T) { s.refused(c.status, c.where, "POST", "/v1/tasks/bulk", c.body) })
	}
}

// TestBulkFiltersHaveAllParametersOfLists compares the fields of a bulk filter with the parameters
// of the list.
func TestBulkFiltersHaveAllParametersOfLists(t *testing.T) {
	fields, parameters := map[string]bool{}, map[string]bool{}
	for f := range reflect.TypeFor[wire.TaskFilter]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
	}
	for f := range reflect.TypeFor[catalog.TaskPick]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
		parameters[name] = true
	}
	require.Equal(t, parameters, fields)
}
