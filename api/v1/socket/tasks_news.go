package socket

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

const (
	newsPace    = 250 * time.Millisecond // minimum time between two reads of the store
	newsShare   = 4                      // reads take at most this fraction (1/n) of the time
	newsRows    = 500                    // rows per read
	newsOverlap = int64(10_000)          // milliseconds; covers members that write late
)

// tasksNews finds tasks that have changed on any member, by reading the last updated ones. It reads
// once for all listeners, and only while there are some. It may miss a task that is written more
// than newsOverlap late. It reports a gap when more tasks changed than one read returns.
type tasksNews struct {
	store interface {
		ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error)
	}
	log func(error)

	mu        sync.Mutex
	listeners map[*newsListener]bool
	stop      context.CancelFunc
	ended     chan struct{} // closed when the follower has stopped
}

// newsListener collects the changes for one listener since its last read.
type newsListener struct {
	changed chan struct{}
	started chan struct{} // closed after the first read, when all further changes are seen

	mu   sync.Mutex
	rows map[string]*persistence.TaskRow
	gap  bool // more tasks changed than rows holds
}

// takeRows returns the collected changes and clears them.
func (l *newsListener) takeRows() (rows []*persistence.TaskRow, gap bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range l.rows {
		rows = append(rows, row)
	}
	gap, l.gap, l.rows = l.gap, false, nil
	slices.SortFunc(rows, func(a, b *persistence.TaskRow) int { return newestFirst(a, b) })
	return rows, gap
}

func (l *newsListener) addRows(rows []*persistence.TaskRow, gap bool) {
	if len(rows) == 0 && !gap {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil {
		l.rows = map[string]*persistence.TaskRow{}
	}
	for _, row := range rows {
		l.rows[row.ID] = row
	}
	if l.gap = l.gap || gap; len(l.rows) > newsRows {
		l.gap, l.rows = true, nil
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// addListener adds a listener. The caller must call leave at the end.
func (n *tasksNews) addListener() (l *newsListener, leave func()) {
	l = &newsListener{changed: make(chan struct{}, 1), started: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[l] = true
	if n.stop == nil {
		n.startFollower()
	}
	return l, func() {
		n.mu.Lock()
		delete(n.listeners, l)
		ended := n.ended
		last := len(n.listeners) == 0
		if last {
			n.stop()
			n.stop = nil
		}
		n.mu.Unlock()
		if last {
			<-ended
		}
	}
}

// startFollower starts the goroutine that polls for changes.
func (n *tasksNews) startFollower() {
	// ends with the last listener, which waits for the end
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	n.stop, n.ended = stop, ended
	go func() {
		defer close(ended)
		n.pollChanges(ctx)
	}()
}

// pollChanges reads changes until ctx ends.
func (n *tasksNews) pollChanges(ctx context.Context) {
	seen := &newsSeen{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		n.readChanges(ctx, seen)
		timer.Reset(max(newsPace, newsShare*time.Since(began)))
	}
}

// readChanges reads changes once. After an error or a panic, the next read includes these changes.
func (n *tasksNews) readChanges(ctx context.Context, seen *newsSeen) {
	defer func() {
		if p := recover(); p != nil {
			n.log(fmt.Errorf("looking for changed tasks panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	list, err := n.store.ListTasks(ctx, persistence.TaskFilter{ByUpdate: true, Limit: newsRows})
	if err != nil {
		return
	}
	rows, gap := seen.changedRows(list)
	n.notifyListeners(ctx, rows, gap)
}

// notifyListeners passes changes to all listeners. It marks listeners that were added before the
// read as started.
func (n *tasksNews) notifyListeners(ctx context.Context, rows []*persistence.TaskRow, gap bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.listeners {
		l.addRows(rows, gap)
		select {
		case <-l.started:
		default:
			if ctx.Err() == nil {
				close(l.started)
			}
		}
	}
}

// newsSeen holds the result of the last read.
type newsSeen struct {
	at      map[string]newsPrint
	newest  int64
	started bool
}

// newsPrint holds the values of a row that are compared to detect changes.
type newsPrint struct {
	updated, created int64
	steps            int
	status           string
	paused           bool
}

func printOf(t *persistence.TaskRow) newsPrint {
	return newsPrint{t.UpdatedAt, t.CreatedAt, t.Steps, t.Status, t.Paused}
}

// changedRows returns the rows that differ from the last read. gap reports whether more rows may
// have changed. For the first read, it returns no rows.
func (s *newsSeen) changedRows(list []persistence.TaskRow) (rows []*persistence.TaskRow, gap bool) {
	first, since, at := !s.started, s.newest-newsOverlap, make(map[string]newsPrint, len(list))
	s.started = true
	for i := range list {
		t := &list[i]
		now := printOf(t)
		at[t.ID], s.newest = now, max(s.newest, t.UpdatedAt)
		if t.UpdatedAt > since && s.at[t.ID] != now {
			rows, gap = append(rows, t), i == newsRows-1
		}
	}
	s.at = at
	if first {
		return nil, false
	}
	return rows, gap
}
