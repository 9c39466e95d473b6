package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// spans reads a task's trace.
func (s *server) spans(id string) (list []obj) {
	resource := s.get("/v1/tasks/" + id + "/trace")["resourceSpans"].([]any)[0].(obj)
	for _, span := range resource["scopeSpans"].([]any)[0].(obj)["spans"].([]any) {
		list = append(list, span.(obj))
	}
	return list
}

// attributesOf returns the attributes of a span.
func attributesOf(span obj) obj {
	all := obj{}
	for _, a := range span["attributes"].([]any) {
		for _, v := range a.(obj)["value"].(obj) {
			all[a.(obj)["key"].(string)] = v
		}
	}
	return all
}

func TestATaskIsReadAsATrace(t *testing.T) {
	s := start(t)
	id := s.task(waits, obj{"a": 1})
	before := s.spans(id)
	require.Equal(t, true, attributesOf(before[1])["troupe.open"], "it goes on")
	s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "go", "value": "now"})
	s.ended(id, "completed")
	spans := s.spans(id)
	require.Equal(t, spans, s.spans(id), "whoever asks is told the same")
	require.Len(t, spans, 3)
	require.True(t, strings.HasPrefix(spans[0]["name"].(string), "start "))
	require.NotContains(t, spans[0], "parentSpanId")
	for i, span := range spans {
		require.Equal(t, before[i]["spanId"], span["spanId"])
		require.Equal(t, trace.IDOf(id, nil).String(), span["traceId"])
		require.Equal(t, id, attributesOf(span)["troupe.task.id"])
		if i > 0 {
			require.Equal(t, spans[0]["spanId"], span["parentSpanId"])
		}
	}
	require.Equal(t, "completed", attributesOf(spans[1])["troupe.state"])
	require.Equal(t, "wait signal", spans[2]["name"])
	s.refused(404, "path.task", "GET", "/v1/tasks/no/trace", nil)
}

func TestAFailedAttemptIsAFailedSpan(t *testing.T) {
	s := start(t)
	id := s.task(`{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"no such function"}}}`, obj{})
	s.ended(id, "failed")
	for _, span := range s.spans(id) {
		if span["name"] == "attempt a" {
			require.EqualValues(t, 2, span["status"].(obj)["code"])
			require.Contains(t, span["status"].(obj)["message"], "no such function")
			require.Equal(t, "error", attributesOf(span)["error.type"])
			require.Equal(t, trace.SpanOf(id, flow.Address{Node: "a", Visit: 1, Attempt: 1}).String(), span["spanId"])
			return
		}
	}
	t.Fatal("the attempt is not told")
}

// caller is a traceparent; its trace and its span follow.
const caller, callersTrace, callersSpan = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// startIn starts a task with headers of a trace.
func (s *server) startIn(path, parent string, body any) string {
	s.Helper()
	return s.call(201, "POST", path, body, "Traceparent", parent, "Tracestate", "a=1")["id"].(string)
}

func TestATaskBelongsToTheTraceOfItsCaller(t *testing.T) {
	s := start(t)
	flow := s.publish(waits)
	id := s.startIn("/v1/tasks", caller, obj{"flow": flow})
	spans := s.spans(id)
	for i, span := range spans {
		require.Equal(t, callersTrace, span["traceId"])
		require.NotContains(t, span, "links")
		if i > 0 {
			require.Equal(t, spans[0]["spanId"], span["parentSpanId"])
		}
	}
	require.Equal(t, callersSpan, spans[0]["parentSpanId"])
	require.Equal(t, callersTrace, s.get("/v1/tasks/" + id)["trace_id"])

	again := s.startIn("/v1/tasks/"+id+"/rerun", caller, obj{})
	require.Equal(t, callersTrace, s.spans(again)[0]["traceId"], "every route that starts a task looks at the header")
	for _, wrong := range []string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", "ff" + caller[2:], strings.ToUpper(caller)} {
		own := s.spans(s.startIn("/v1/tasks", wrong, obj{"flow": flow}))[0]
		require.NotContains(t, own, "parentSpanId", wrong)
		require.NotEqual(t, callersTrace, own["traceId"])
	}
}

func TestATaskOfAScheduleHasATraceOfItsOwn(t *testing.T) {
	s := start(t)
	name := s.unique("nightly")
	s.call(201, "PUT", "/v1/schedules/"+name, obj{"flow": s.publish(waits), "every": "10h"})
	id := s.startIn("/v1/schedules/"+name+"/trigger", caller, obj{})
	begin := s.spans(id)[0]
	require.Equal(t, trace.IDOf(id, nil).String(), begin["traceId"])
	require.NotContains(t, begin, "parentSpanId")
	require.Equal(t, []any{obj{"traceId": callersTrace, "spanId": callersSpan,
		"traceState": "a=1"}}, begin["links"], "it points to whoever asked for it")
}
