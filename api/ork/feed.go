package ork

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/persistence"
)

// transitionFeed tells whoever listens every transition of every run. It follows the journals of
// runs, which any member can, wherever their tasks are; nobody pays for it while nobody listens. A
// listener that is slow is sent away, since the others do not wait for it.
type transitionFeed struct {
	d         *dialect
	mu        sync.Mutex
	listeners map[*feedListener]bool
	stop      context.CancelFunc // of following; nil = nobody listens
	runs      map[string]*runTransitions
}

type feedListener struct {
	messages chan json.RawMessage
	slow     context.CancelFunc
}

// Bounds of the feed.
const (
	feedBuffer  = 1000  // messages that wait for a listener
	feedRuns    = 10000 // that are followed at once
	feedPause   = 200 * time.Millisecond
	feedPage    = 200
	feedPatient = 10 * time.Second // for one message to be read
)

// serveSocket upgrades a request. Nothing that a client says means anything here.
func (f *transitionFeed) serveSocket(w http.ResponseWriter, r *http.Request) {
	leaving, leave := stream.Stay(w, r)
	defer leave()
	ctx, slow := context.WithCancel(leaving)
	defer slow()
	l := &feedListener{make(chan json.RawMessage, feedBuffer), slow}
	f.addListener(ctx, l) // before the client hears that it listens
	defer f.removeListener(l)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the guard in front has looked at its Origin
	if err != nil {
		return // it has been answered
	}
	defer func() { _ = conn.CloseNow() }() // of a connection that is closed it says so
	ctx = conn.CloseRead(ctx)
	for {
		select {
		case <-ctx.Done():
			_ = conn.Close(websocket.StatusGoingAway, "connect again")
			return
		case m := <-l.messages:
			if writeMessage(ctx, conn, m) != nil {
				return
			}
		}
	}
}

func writeMessage(ctx context.Context, conn *websocket.Conn, m json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, feedPatient)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, m)
}

// addListener has a listener hear what happens from now on. The first one has the runs be followed.
func (f *transitionFeed) addListener(ctx context.Context, l *feedListener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners[l] = true
	if f.stop != nil {
		return
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.runs = map[string]*runTransitions{}
	go f.watchRuns(ctx, f.d.Engine.Now().UnixMilli()) // ends with the last listener
}

func (f *transitionFeed) removeListener(l *feedListener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, l)
	if len(f.listeners) == 0 {
		f.stop()
		f.stop = nil
	}
}

// sendAll tells all who listen.
func (f *transitionFeed) sendAll(m any) {
	text, _ := json.Marshal(m) // texts are always marshaled
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		select {
		case l.messages <- text:
		default:
			l.slow()
		}
	}
}

// watchRuns looks for runs that have begun or gone on, and follows them. Of runs that are older
// than it the past is not told.
func (f *transitionFeed) watchRuns(ctx context.Context, since int64) {
	tick := time.NewTicker(feedPause)
	defer tick.Stop()
	seen, whole := since, false
	for ctx.Err() == nil {
		if !whole {
			whole = f.scanRuns(ctx, persistence.TaskFilter{Statuses: api.Unfinished}, since, &seen) == nil
		}
		_ = f.scanRuns(ctx, persistence.TaskFilter{ByUpdate: true}, since, &seen) // else the store is asked again
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// overlap is how much of what was seen is looked at again: what is stored last may bear an earlier
// time.
const overlap = 2000

func (f *transitionFeed) scanRuns(ctx context.Context, which persistence.TaskFilter, since int64, seen *int64) error {
	newest := *seen
	for which.Limit = feedPage; which.Offset < feedRuns; which.Offset += feedPage {
		rows, err := f.d.Store.ListTasks(ctx, which)
		if err != nil {
			return err
		}
		for i := range rows {
			if which.ByUpdate && rows[i].UpdatedAt < *seen-overlap {
				rows = nil
				break
			}
			newest = max(newest, rows[i].UpdatedAt)
			f.followRun(ctx, &rows[i], since)
		}
		if len(rows) < feedPage {
			break
		}
	}
	*seen = newest
	return nil
}

// followRun tells what happens to a run until it has ended. One that goes on after its end is
// followed again.
func (f *transitionFeed) followRun(ctx context.Context, row *persistence.TaskRow, since int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.runs[row.ID]
	switch {
	case ctx.Err() != nil: // the runs may be another watch's by now
		return
	case t != nil && (t.followed || t.updated == row.UpdatedAt), t == nil && !f.makeRoom():
		return
	case t == nil:
		t = &runTransitions{run: publicRunID(row.ID), send: f.sendAll, status: map[taskUnit]string{}, cutShort: map[int]bool{}}
		f.runs[row.ID] = t
	}
	t.followed, t.updated = true, row.UpdatedAt
	go func() { // ends with the run, or with the last listener
		if t.plan != nil || f.beginWithRetry(ctx, t, row, since) == nil {
			_ = stream.Follow(ctx, f.d.Engine, row.ID, t.seq, func(error) error { return nil }, t.applyRow)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		t.followed = false
	}()
}

// makeRoom makes room for one more run: those that have ended are forgotten first.
func (f *transitionFeed) makeRoom() bool {
	if len(f.runs) < feedRuns {
		return true
	}
	for id, t := range f.runs {
		if !t.followed {
			delete(f.runs, id)
		}
	}
	return len(f.runs) < feedRuns
}

// beginWithRetry begins, as soon as the store answers.
func (f *transitionFeed) beginWithRetry(ctx context.Context, t *runTransitions, row *persistence.TaskRow, since int64) error {
	for {
		err := f.beginRun(ctx, t, row, since)
		if err == nil || api.Missing(err) {
			return err
		}
		if err := stream.Outlast(ctx, err, func(error) error { return nil }); err != nil {
			return err
		}
	}
}

// beginRun reads how far a run is that had begun before.
func (f *transitionFeed) beginRun(ctx context.Context, t *runTransitions, row *persistence.TaskRow, since int64) error {
	plan, err := f.d.Reader.Plan(ctx, row.VersionID)
	if err != nil {
		return err
	}
	if row.CreatedAt < since {
		v, err := f.d.Reader.View(ctx, row.ID)
		if err != nil {
			return err
		}
		h, err := f.d.Reader.History(ctx, row.ID)
		if err != nil {
			return err
		}
		t.seq = v.Seq
		t.loadState(h)
	}
	t.plan = plan
	return nil
}
