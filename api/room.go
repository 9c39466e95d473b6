package api

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/flow"
)

// lane is memory that requests share.
type lane struct {
	all  int64
	free *semaphore.Weighted
}

func newLane(bytes int64) *lane { return &lane{bytes, semaphore.NewWeighted(bytes)} }

// room is what one request holds of the memory for tasks: until it is over, or goes on as a stream or as one who waits,
// of which there is less. It implements persistence.Room.
type room struct {
	patience time.Duration

	mu    sync.Mutex
	in    *lane
	taken int64
	over  bool
}

// Take waits for its turn. One that wants more than there is has it all.
func (m *room) Take(ctx context.Context, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := min(bytes, m.in.all) - m.taken
	if more <= 0 || m.over {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	if m.in.free.Acquire(waiting, more) != nil {
		return flow.Errorf(flow.Busy, "other large tasks are being read: try again in a moment")
	}
	m.taken += more
	return nil
}

// Keep gives back what is more than that.
func (m *room) Keep(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(bytes)
}

func (m *room) keep(bytes int64) {
	if less := m.taken - bytes; less > 0 {
		m.in.free.Release(less)
		m.taken = bytes
	}
}

// move gives back everything: what is taken from now on is taken elsewhere.
func (m *room) move(to *lane) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(0)
	m.in = to
}

func (m *room) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(0)
	m.over = true
}
