package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func (w *testEnv) listWorkers() []persistence.Worker {
	w.Helper()
	return requireList[persistence.Worker](w)(w.ListWorkers(w.ctx()))
}

func (w *testEnv) putWorker(worker persistence.Worker) {
	w.Helper()
	require.NoError(w, w.PutWorker(w.ctx(), worker))
}

var workers = []storeBehavior{
	{"workers are listed in order of first registration", func(w *testEnv) {
		b := persistence.Worker{ID: "b", URL: "http://b", Type: "http", Services: []string{"x", "y"},
			Labels: []string{"gpu", `o"d'd`}, Secret: "s3cr't", Load: 2, LastHeartbeat: 5, RegisteredAt: 5}
		w.putWorker(b)
		w.putWorker(persistence.Worker{ID: "a", RegisteredAt: 6})
		require.Equal(w, []persistence.Worker{b, {ID: "a", RegisteredAt: 6}}, w.listWorkers())
	}},
	{"registering again changes all but the first registration", func(w *testEnv) {
		w.putWorker(persistence.Worker{ID: "a", URL: "old", RegisteredAt: 1,
			Services: []string{"x"}, Labels: []string{"gpu"}, Secret: "old"})
		w.putWorker(persistence.Worker{ID: "b", RegisteredAt: 2})
		w.putWorker(persistence.Worker{ID: "b", RegisteredAt: 3, Labels: []string{"eu"}})
		w.putWorker(persistence.Worker{ID: "a", URL: "new", Type: "t", Services: []string{},
			Labels: []string{}, Secret: "new", Load: 3, LastHeartbeat: 9, RegisteredAt: 9})
		require.Equal(w, []persistence.Worker{
			{ID: "a", URL: "new", Type: "t", Services: []string{}, Secret: "new", Load: 3, LastHeartbeat: 9, RegisteredAt: 1},
			{ID: "b", RegisteredAt: 2, Labels: []string{"eu"}},
		}, w.listWorkers())
	}},
	{"heartbeats reach those who are registered", func(w *testEnv) {
		w.putWorker(persistence.Worker{ID: "a"})
		w.putWorker(persistence.Worker{ID: "b"})
		require.NoError(w, w.TouchWorkers(w.ctx(), []persistence.Heartbeat{{ID: "b", Load: 4, At: 7}, {ID: "x", At: 7}}))
		require.Equal(w, []persistence.Worker{{ID: "a"}, {ID: "b", Load: 4, LastHeartbeat: 7}}, w.listWorkers())
		require.NoError(w, w.TouchWorkers(w.ctx(), nil))
	}},
	{"what is heard late of a worker does not set its times back", func(w *testEnv) {
		w.putWorker(persistence.Worker{ID: "a", JoinedAt: 3})
		require.NoError(w, w.TouchWorkers(w.ctx(), []persistence.Heartbeat{{ID: "a", Load: 1, At: 9, PolledAt: 5}}))
		require.NoError(w, w.TouchWorkers(w.ctx(), []persistence.Heartbeat{{ID: "a", Load: 2, At: 7, PolledAt: 6}}))
		require.NoError(w, w.TouchWorkers(w.ctx(), []persistence.Heartbeat{{ID: "a", Load: 2, At: 7}}))
		require.Equal(w, []persistence.Worker{{ID: "a", Load: 2, LastHeartbeat: 9, JoinedAt: 3, PolledAt: 6}}, w.listWorkers())
		w.putWorker(persistence.Worker{ID: "a", LastHeartbeat: 10, JoinedAt: 10})
		require.Equal(w, []persistence.Worker{{ID: "a", LastHeartbeat: 10, JoinedAt: 10, PolledAt: 6}}, w.listWorkers())
	}},
	{"a worker is deleted by its id", func(w *testEnv) {
		for _, id := range []string{"a", "b", "c"} {
			w.putWorker(persistence.Worker{ID: id})
		}
		require.NoError(w, w.DeleteWorker(w.ctx(), "b"))
		require.NoError(w, w.DeleteWorker(w.ctx(), "b"))
		require.NoError(w, w.DeleteWorker(w.ctx(), "x"))
		require.Equal(w, []persistence.Worker{{ID: "a"}, {ID: "c"}}, w.listWorkers())
		require.NoError(w, w.TouchWorkers(w.ctx(), []persistence.Heartbeat{{ID: "b", At: 7}}))
		w.putWorker(persistence.Worker{ID: "b", RegisteredAt: 9})
		require.Equal(w, []persistence.Worker{{ID: "a"}, {ID: "c"}, {ID: "b", RegisteredAt: 9}}, w.listWorkers())
	}},
	{"silent workers are deleted", func(w *testEnv) {
		w.putWorker(persistence.Worker{ID: "a", LastHeartbeat: 4})
		w.putWorker(persistence.Worker{ID: "b", LastHeartbeat: 5})
		n, err := w.DeleteWorkers(w.ctx(), 5)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Equal(w, []persistence.Worker{{ID: "b", LastHeartbeat: 5}}, w.listWorkers())
	}},
}
