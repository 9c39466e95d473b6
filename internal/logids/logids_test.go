package logids_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/internal/logids"
)

func ids(pairs ...string) func() []slog.Attr {
	return func() (list []slog.Attr) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, slog.String(pairs[i], pairs[i+1]))
		}
		return list
	}
}

func TestLogLinesHaveTheIdsOfTheirContext(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(logids.Handler(slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	outer := logids.With(t.Context(), ids("request", "r", "task", "outer"))
	inner := logids.With(outer, ids("task", "t", "node", "n"))
	log.InfoContext(inner, "a", "node", "said")
	log.With("member", "m").InfoContext(outer, "b")
	log.Info("c")
	require.Equal(t, `level=INFO msg=a node=said task=t request=r
level=INFO msg=b member=m request=r task=outer
level=INFO msg=c
`, said.String())
}

func TestNoIdsAreComputedForSuppressedLines(t *testing.T) {
	log := slog.New(logids.Handler(slog.NewTextHandler(new(bytes.Buffer), nil)))
	log.DebugContext(logids.With(t.Context(), func() []slog.Attr {
		t.Error("they were made")
		return nil
	}), "quiet")
}

func TestLogLinesHaveTheIdsOfTheirJob(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(logids.Handler(slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	at := flow.Address{Scope: "order#1", Node: "pay", Visit: 1, Unit: 17, Attempt: 2}
	traced := flow.ReadTraced("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	job := &flow.Job{Task: "t", Address: at, Traced: traced, Plan: &flow.Plan{FlowSlug: "shop"}}
	log.InfoContext(logids.Job(t.Context(), job), "a")
	log.InfoContext(logids.Attempt(t.Context(), "t", at), "b")
	log.InfoContext(logids.JobID(t.Context(), flow.JobID("t", at)), "c")
	log.InfoContext(logids.JobID(t.Context(), "nonsense"), "d")
	require.Equal(t, `level=INFO msg=a task=t node=pay unit=17 attempt=2 scope=order#1 `+
		`flow=shop trace_id=0af7651916cd43dd8448eb211c80319c span_id=`+trace.SpanOf("t", at).String()+`
level=INFO msg=b task=t node=pay unit=17 attempt=2 scope=order#1
level=INFO msg=c task=t node=pay unit=17 attempt=2 scope=order#1
level=INFO msg=d
`, said.String())
}
