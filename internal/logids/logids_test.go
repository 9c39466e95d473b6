package logids_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestLinesTellTheIdsOfTheirContext(t *testing.T) {
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

func TestNoIdsAreMadeForLinesThatNobodyWrites(t *testing.T) {
	log := slog.New(logids.Handler(slog.NewTextHandler(new(bytes.Buffer), nil)))
	log.DebugContext(logids.With(t.Context(), func() []slog.Attr {
		t.Error("they were made")
		return nil
	}), "quiet")
}
