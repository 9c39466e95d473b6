package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// In this test no data arrives because the other end does not read; the kernel treats both cases
// alike.
func TestAConnectionBreaksWhenItsEndReceivesNothing(t *testing.T) {
	t.Parallel()
	d, through := newDetour(t, pgtest.DSN(t))
	s, _ := joined(t, through)
	defer d.hold()()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.CreateFlow(ctx, persistence.Flow{ID: "other", Description: strings.Repeat("x", 64<<20)})
	require.ErrorIs(t, err, persistence.ErrUnavailable)
	require.NoError(t, ctx.Err(), "it was known before")
}
