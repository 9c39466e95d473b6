package api

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/flow"
)

// memoryPool is memory that requests share.
type memoryPool struct {
	all  int64
	free *semaphore.Weighted
}

func newLane(bytes int64) *memoryPool { return &memoryPool{bytes, semaphore.NewWeighted(bytes)} }

// requestMemory is the memory that one request has reserved for tasks. It is released when the
// request ends. A request that stays as a stream or long poll moves to a smaller pool. It
// implements persistence.Room.
type requestMemory struct {
	patience time.Duration

	mu        sync.Mutex
	in        *memoryPool
	heldBytes int64
	released  bool
}

// Take waits for memory. A request for more than the size of the pool reserves the whole pool.
func (m *requestMemory) Take(ctx context.Context, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := min(bytes, m.in.all) - m.heldBytes
	if more <= 0 || m.released {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	if m.in.free.Acquire(waiting, more) != nil {
		return flow.Errorf(flow.Busy, "other large tasks are being read: try again in a moment")
	}
	m.heldBytes += more
	return nil
}

// Keep releases the memory above the given number of bytes.
func (m *requestMemory) Keep(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releaseAbove(bytes)
}

func (m *requestMemory) releaseAbove(bytes int64) {
	if less := m.heldBytes - bytes; less > 0 {
		m.in.free.Release(less)
		m.heldBytes = bytes
	}
}

// moveTo releases all memory. Further memory comes from another pool.
func (m *requestMemory) moveTo(to *memoryPool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releaseAbove(0)
	m.in = to
}

func (m *requestMemory) releaseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releaseAbove(0)
	m.released = true
}
