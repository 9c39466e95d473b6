package v1

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
	newsPace    = 250 * time.Millisecond // how far apart looks at the store are, at least
	newsShare   = 4                      // and a look may take one part in so many of the time
	newsRows    = 500                    // that a look sees
	newsOverlap = int64(10_000)          // ms: what members write whose clocks are behind, or late, is seen all the same
)

// tasksNews finds out which tasks have changed, on whatever member, by looking at those that were
// updated last. It looks only while somebody listens, and once for all who do. It may miss a task
// whose member writes more than newsOverlap late, and tells so (a gap) when more happened than it
// sees.
type tasksNews struct {
	store interface {
		ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error)
	}
	log func(error)

	mu        sync.Mutex
	listeners map[*newsListener]bool
	stop      context.CancelFunc
	ended     chan struct{} // when whoever looks has stopped
}

// newsListener gets what has changed since it was asked last.
type newsListener struct {
	changed chan struct{}
	started chan struct{} // the first look is over: nothing is missed from here on

	mu   sync.Mutex
	rows map[string]*persistence.TaskRow
	gap  bool // more than is in rows
}

// takeRows empties it.
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

// addListener has somebody hear the news until leave is called, which it has to be.
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

// startFollower starts whoever looks.
func (n *tasksNews) startFollower() {
	ctx, stop := context.WithCancel(context.Background()) // ends with the last listener, who waits for it
	ended := make(chan struct{})
	n.stop, n.ended = stop, ended
	go func() {
		defer close(ended)
		n.pollChanges(ctx)
	}()
}

// pollChanges looks again and again.
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

// readChanges looks once. What it cannot read, or panics at, the next look tells.
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

// notifyListeners gives news to all, and lets those begin who have come since the look before.
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

// newsSeen is what the last look saw.
type newsSeen struct {
	at      map[string]newsPrint
	newest  int64
	started bool
}

// newsPrint tells whether a row has changed.
type newsPrint struct {
	updated, created int64
	steps            int
	status           string
	paused           bool
}

func printOf(t *persistence.TaskRow) newsPrint {
	return newsPrint{t.UpdatedAt, t.CreatedAt, t.Steps, t.Status, t.Paused}
}

// changedRows are the rows that were not seen as they are, and whether there may be more than were
// read. Of the first look nothing is news.
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
