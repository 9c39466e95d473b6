package attached_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers/attached"
)

// stuck processes no heartbeat before the test ends.
type stuck struct {
	roll
	beats atomic.Int64
}

func (r *stuck) Heartbeat(ctx context.Context, _ string, _ int) error {
	r.beats.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func TestAJobStartsWhileAHeartbeatIsPassedOn(t *testing.T) {
	r := &stuck{roll: roll{gone: make(chan string, 10)}}
	s := open(t, attached.Options{Heartbeat: time.Second, Workers: r})
	w, _ := dial(t, s, hello(1, "s"))
	stop := make(chan struct{})
	defer close(stop)
	go func() { // it is alive
		for {
			select {
			case w.to <- &attach.FromWorker{}:
			case <-stop:
				return
			case <-w.gone:
				return
			}
		}
	}()
	for r.beats.Load() == 0 {
		w.hear()
	}
	for range 2 {
		w.hear() // the member continues to send heartbeats
	}
	s.Send([]actors.Passage{newJob(1, "s")})
	for len(w.hear().GetJobs()) == 0 {
	}
	require.EqualValues(t, 1, r.beats.Load(), "one is passed on at a time")
}
