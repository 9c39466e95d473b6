package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestTheEventsOfATaskAreReadInPages(t *testing.T) {
	s := start(t)
	id := s.task(waits, obj{"a": 1})
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": "now"}, "Request-Id", "r")
	s.ended(id, "completed")
	all := items(s.get("/v1/tasks/" + id + "/events"))
	types := []any{}
	for _, e := range all {
		types = append(types, e["type"])
	}
	require.Equal(t, []any{"task_created", "step_entered", "signal_received", "step_ended", "task_ended"}, types)
	require.Equal(t, obj{"a": 1.0}, all[0]["params"])
	require.Equal(t, []any{"go", "now", "signal:r"}, []any{all[2]["key"], all[2]["output"], all[2]["request_id"]})
	require.Equal(t, "completed", all[4]["state"])
	for _, e := range all {
		require.NotContains(t, e, "unit", "no unit is meant, or the only one")
	}
	var paged []obj
	for after := ""; ; {
		page := s.get("/v1/tasks/" + id + "/events?limit=1&after=" + after)
		paged = append(paged, items(page)...)
		if page["next"] == nil {
			break
		}
		after = page["next"].(string)
	}
	require.Equal(t, all, paged)
	last := all[len(all)-1]["id"].(string)
	require.Empty(t, items(s.get("/v1/tasks/"+id+"/events?after="+last)))
	row, _, _ := strings.Cut(all[0]["id"].(string), ".")
	for _, e := range items(s.get("/v1/tasks/" + id + "/events?after=" + row)) {
		require.Greater(t, e["seq"], all[0]["seq"], "the number of a row stands for all of it")
	}
	for _, after := range []string{"x", "-1", "1.", "1.x", "1.-1"} {
		s.refused(400, "query.after", "GET", "/v1/tasks/"+id+"/events?after="+after, nil)
	}
}

// long is a flow with more journal rows and runs than one read takes.
const long = `{"start":"l","nodes":{"l":{"kind":"foreach","parallel_mode":"sequential","exec_type":"local_func","func":"upper","prep":{"input_key":"$params.list"},"post":{"output_key":"out"}}}}`

func TestALongHistoryIsReadInPages(t *testing.T) {
	s := start(t)
	list := make([]string, 130)
	for i := range list {
		list[i] = "x"
	}
	id := s.task(long, obj{"list": list})
	s.ended(id, "completed")
	require.Greater(t, s.get("/v1/tasks/" + id)["seq"], 100.0)
	for _, route := range []string{"events?after=", "runs?cursor="} {
		var ids []any
		for next := ""; ; {
			page := s.get("/v1/tasks/" + id + "/" + route + next + "&limit=37")
			require.LessOrEqual(t, len(items(page)), 37)
			for _, item := range items(page) {
				if item["id"] != nil {
					ids = append(ids, item["id"])
				} else {
					ids = append(ids, item["job"])
				}
			}
			if page["next"] == nil {
				break
			}
			next = page["next"].(string)
		}
		seen := map[any]bool{}
		for _, id := range ids {
			require.False(t, seen[id], "%s: %v is there twice", route, id)
			seen[id] = true
		}
		require.GreaterOrEqual(t, len(ids), 131, route)
	}
}

func TestRunsHaveTheirTrueTimes(t *testing.T) {
	s := start(t)
	id := s.task(
		`{"start":"u","nodes":{"u":{"exec_type":"local_func","func":"upper","prep":{"input_key":"$params.text"},"post":{"output_key":"out"}}, `+
			`"t":{"kind":"timer","params":{"delay_ms":30}}},"edges":[{"from":"u","action":"default","to":"t"}]}`,
		obj{"text": "a"})
	s.ended(id, "completed")
	runs := items(s.get("/v1/tasks/" + id + "/runs"))
	require.Len(t, runs, 2)
	require.Equal(t, []any{"u", "attempt", "ok", "a", "A", 1.0},
		[]any{runs[0]["node"], runs[0]["kind"], runs[0]["state"], runs[0]["input"],
			runs[0]["output"], runs[0]["attempt"]})
	require.NotEmpty(t, runs[0]["job"])
	require.Equal(t, []any{"t", "summary", "ok"}, []any{runs[1]["node"], runs[1]["kind"], runs[1]["state"]})
	require.NotContains(t, runs[1], "job")
	require.Less(t, runs[1]["started_at"], runs[1]["ended_at"], "texts of times are ordered like times")
	require.GreaterOrEqual(t, runs[1]["started_at"], runs[0]["ended_at"])
}

func TestWaitingIsExplained(t *testing.T) {
	s := start(t)
	for name, tt := range map[string]struct{ definition, reason, text string }{
		"a signal": {waits, "signal", "a signal must set go"},
		"a timer":  {`{"start":"t","nodes":{"t":{"kind":"timer","params":{"delay_ms":60000}}}}`, "timer", "time"},
		"a job":    {queued, "job", "paint"},
	} {
		t.Run(name, func(t *testing.T) {
			id := s.task(tt.definition, obj{"color": "red"})
			v := s.until("/v1/tasks/"+id+"/waiting", func(v obj) bool { return len(v["waits"].([]any)) > 0 })
			require.Equal(t, "running", v["state"])
			wait := v["waits"].([]any)[0].(obj)
			require.Equal(t, tt.reason, wait["kind"])
			require.Contains(t, wait["text"], tt.text)
			require.NotEmpty(t, wait["waiting_since"])
			if tt.reason == "job" {
				require.Equal(t, "pending", s.get("/v1/jobs/" + wait["job"].(string))["state"])
			}
			s.call(200, "POST", "/v1/tasks/"+id+"/cancel", nil)
			require.Equal(t, obj{"state": "canceled", "waits": []any{}}, s.get("/v1/tasks/"+id+"/waiting"))
		})
	}
}

func TestAPageOfLargeValuesIsShort(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	large := strings.Repeat("x", 900_000)
	for range 12 {
		s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "k", "value": large})
	}
	page := s.get("/v1/tasks/" + id + "/events?limit=500")
	require.Less(t, len(items(page)), 9)
	count := len(items(page))
	for page["next"] != nil {
		page = s.get("/v1/tasks/" + id + "/events?limit=500&after=" + page["next"].(string))
		count += len(items(page))
	}
	require.Equal(t, 14, count)
}

func TestTheHistoryNamesTheTokenOfASignal(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"root"} })
	made, err := s.as("root").CreateToken(t.Context(), wire.TokenRequest{Name: "ada", Role: "approver"})
	require.NoError(t, err)
	auth := []string{"Authorization", "Bearer root"}
	s.call(201, "PUT", "/v1/flows/asks", waits, auth...)
	for by, want := range map[string]string{"": "ada", "ada": "ada", "bob": "ada for bob",
		strings.Repeat("ü", 128): "ada for " + strings.Repeat("ü", 124)} {
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": "asks"}, auth...)["id"].(string)
		s.call(200, "POST", "/v1/tasks/"+id+"/signal",
			obj{"key": "go", "value": true, "sent_by": by}, "Authorization", "Bearer "+made.Secret)
		var told []any
		for _, e := range items(s.call(200, "GET", "/v1/tasks/"+id+"/events", nil, auth...)) {
			if e["type"] == "signal_received" {
				told = append(told, e["sent_by"])
			}
		}
		require.Equal(t, []any{want}, told)
	}
}

func TestTheHistoryNamesTheSenderOfASignal(t *testing.T) {
	s := start(t)
	id := s.task(waits)
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": true, "sent_by": "ada"})
	s.ended(id, "completed")
	var by []any
	for _, e := range items(s.get("/v1/tasks/" + id + "/events")) {
		if e["type"] == "signal_received" {
			by = append(by, e["sent_by"])
		}
	}
	require.Equal(t, []any{"ada"}, by)
	s.refused(400, "body.sent_by", "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "sent_by": strings.Repeat("x", 257)})
}
