package troupe

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// waitsFor returns a flow whose only node waits for an approval.
func waitsFor(node string) []byte {
	return []byte(`{"start":"` + node + `","nodes":{"` + node + `":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`)
}

func open(t *testing.T, store string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Store: store})
	require.NoError(t, err)
	return e
}

// deleteFlow deletes a flow from the same store, like the API does.
func (e *Engine) deleteFlow(t *testing.T, slug string) {
	t.Helper()
	f, err := e.stores.Newest.FlowBySlug(t.Context(), slug)
	require.NoError(t, err)
	_, err = e.stores.Newest.DeleteFlow(t.Context(), f.ID, 500)
	require.NoError(t, err)
}

func (e *Engine) cursor(t *testing.T, task string) string {
	t.Helper()
	v, err := e.stores.Reader.View(t.Context(), task)
	require.NoError(t, err)
	return v.State.Root.Cursor
}

func TestADeletedFlowIsForgotten(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	e := open(t, store)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), "f", waitsFor("old")))
	old, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	e.deleteFlow(t, "f")

	_, err = e.Start(t.Context(), "f", nil)
	require.ErrorIs(t, err, persistence.ErrNotFound, "a deleted flow cannot be started")
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(e.Cancel(t.Context(), old)), "its tasks are gone")

	require.NoError(t, e.Publish(t.Context(), "f", waitsFor("new")))
	id, err := e.Start(t.Context(), "f", nil)
	require.NoError(t, err)
	require.Equal(t, "new", e.cursor(t, id), "what was published then is what runs")

	require.NoError(t, e.Close())
	e = open(t, store)
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(e.Cancel(t.Context(), old)))
	require.NoError(t, e.Cancel(t.Context(), id))
}
