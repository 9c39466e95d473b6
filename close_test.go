package troupe_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
)

// nowhere accepts spans and drops them.
type nowhere struct{}

func (nowhere) Tell(context.Context, []troupe.Span) error { return nil }

func TestAnEngineMayBeClosedTwice(t *testing.T) {
	for name, spans := range map[string]troupe.Spans{"without spans": nil, "with spans": nowhere{}} {
		t.Run(name, func(t *testing.T) {
			e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db"), Spans: spans})
			require.NoError(t, err)
			_, err = e.Member(t.Context())
			require.NoError(t, err)
			require.NoError(t, e.Close())
			require.NotPanics(t, func() { require.NoError(t, e.Close()) })
		})
	}
}
