package troupe

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/member/news"
	"github.com/troupe-engine/troupe/persistence"
)

// beyond is a living member whose advertised address accepts connections and never answers.
func beyond(t *testing.T, store string) *Engine {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hole.Close()) })
	return join(t, Config{Store: store, Name: "beyond", Advertise: "http://" + hole.Addr().String()})
}

func TestWorkersDoNotWaitForUnreachableMembers(t *testing.T) {
	store := pgtest.DSN(t)
	a, c := join(t, Config{Store: store, Name: "a"}), join(t, Config{Store: store, Name: "c"})
	beyond(t, store)
	w := persistence.Worker{ID: "w", URL: "queue", Type: "async"}
	require.NoError(t, a.workers.Register(t.Context(), w))
	const many = 30
	begun := time.Now()
	for load := range many {
		require.NoError(t, a.workers.Heartbeat(t.Context(), w.ID, load))
	}
	require.Less(t, time.Since(begun), many*news.WorkerWait/3, "each would wait for as long as members are given to take note")
	begun = time.Now()
	for range many {
		require.NoError(t, a.workers.Register(t.Context(), w))
	}
	require.Less(t, time.Since(begun), many*news.WorkerWait/2, "one waits for all that come meanwhile")
	// a heartbeat in the millisecond of the registration, or a lost one, is followed by others
	require.Eventually(t, func() bool {
		require.NoError(t, a.workers.Heartbeat(t.Context(), w.ID, many-1))
		known, err := c.workers.List(t.Context())
		require.NoError(t, err)
		return known[len(known)-1].Load == many-1
	}, 30*time.Second, 10*time.Millisecond)
}
