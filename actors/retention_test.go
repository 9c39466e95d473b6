package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAnEndedTaskIsDeletedSoonAfterAShortRetention(t *testing.T) {
	cfg := withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{} })
	cfg.Retention = 100 * time.Millisecond
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`), `{}`)
	require.Eventually(t, func() bool {
		_, err := th.store.Task(t.Context(), id)
		return errors.Is(err, persistence.ErrNotFound)
	}, patience/2, 10*time.Millisecond)
}
