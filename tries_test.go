package troupe

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestTriedDefinitionsAreDeletedWithTheirRunningTasks(t *testing.T) {
	e, err := Open(t.Context(), Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	waits := []byte(`{"start":"x","nodes":{"x":{"exec_type":"queue","service":"nobody"}}}`)
	require.NoError(t, e.Publish(t.Context(), "stays", waits))
	stays, err := e.Start(t.Context(), "stays", nil)
	require.NoError(t, err)

	try := func(at int64) string {
		v, _, err := persistence.Try(t.Context(), e.stores.Newest, persistence.Publication{Slug: "stays", Definition: waits, Now: at}, "")
		require.NoError(t, err)
		started, err := (*e.currentEngine.Load()).StartTask(t.Context(), engine.NewTask{VersionID: v.ID})
		require.NoError(t, err)
		return started.Task
	}
	// younger than triedFor, so the member's own sweep leaves both alone
	now := time.Now().UnixMilli()
	old, young := try(now-1), try(now)
	more, err := e.forgetTried(t.Context(), now)
	require.NoError(t, err)
	require.False(t, more)
	_, err = e.stores.Newest.Task(t.Context(), old)
	require.ErrorIs(t, err, persistence.ErrNotFound)
	for _, id := range []string{stays, young} {
		task, err := e.stores.Newest.Task(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, string(flow.TaskRunning), string(task.Status))
	}
}
