package v1_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/faulty"
)

// trouble is the outage of a store. While it is not nil, writes fail with it and reads of tasks get
// no answer.
type trouble struct {
	is atomic.Pointer[persistence.Outage]
}

func (tr *trouble) wrap(set *settings) {
	set.wrap = func(store persistence.Store) persistence.Store {
		return faulty.Wrap(store, faulty.Hooks{
			Commit: func(string, []persistence.Commit) faulty.Fault {
				if outage := tr.is.Load(); outage != nil {
					return faulty.Fault{Before: func(context.Context) error { return outage }}
				}
				return faulty.Fault{}
			},
			Call: func(ctx context.Context, name string) error {
				if name == "Load" && tr.is.Load() != nil {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			},
		})
	}
}

func TestRequestsGetTheReasonOfAnOutage(t *testing.T) {
	var tr trouble
	s := start(t, tr.wrap)
	slug := s.publish(waits)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	tr.is.Store(&persistence.Outage{Reason: "its disk is full", Err: errors.New("x")})
	const why = "the store is not available, because its disk is full"

	began := time.Now()
	before := s.call(503, "POST", "/v1/tasks", obj{"flow": slug}) // the member does not know yet
	require.Contains(s, before["detail"], why)
	require.Less(s, time.Since(began), 25*time.Second, "it did not wait for the end of its time")
	require.Contains(s, string(s.send("GET", "/readyz", nil).body), why)
	refused := s.call(503, "POST", "/v1/tasks", obj{"flow": slug})
	require.Contains(s, refused["detail"], "nothing was done")
	require.Contains(s, s.call(503, "GET", "/v1/tasks/"+id, nil)["detail"], why, "a read that gets no answer")
	require.Equal(s, "1", s.send("POST", "/v1/tasks", obj{"flow": slug}).header.Get("Retry-After"))

	tr.is.Store(nil)
	require.Eventually(s, func() bool { return s.send("GET", "/readyz", nil).status == 200 }, deadline, time.Millisecond)
	s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
	s.get("/v1/tasks/" + id)
}
