package orkhttp

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

// transitionFeed sends every transition of every run to its listeners. It follows the journals of
// runs, so any member can send the transitions of all members' runs. Without listeners it does
// nothing. A slow listener is disconnected, so that other listeners do not wait.
type transitionFeed struct {
	d         *dialect
	mu        sync.Mutex
	listeners map[*feedListener]bool
	stop      context.CancelFunc // stops following; nil without listeners
	runs      map[string]*runTransitions
}

type feedListener struct {
	messages chan json.RawMessage
	slow     context.CancelFunc
}

// Limits of the feed.
const (
	feedBuffer  = 1000  // messages that wait for one listener
	feedRuns    = 10000 // runs that are followed at once
	feedPause   = 200 * time.Millisecond
	feedPage    = 200
	feedPatient = 10 * time.Second // maximum time for sending one message to a listener
)

// serveSocket upgrades a request. It ignores messages from the client.
func (f *transitionFeed) serveSocket(w http.ResponseWriter, r *http.Request) {
	leaving, leave := stream.Stay(w, r)
	defer leave()
	ctx, slow := context.WithCancel(leaving)
	defer slow()
	l := &feedListener{make(chan json.RawMessage, feedBuffer), slow}
	f.addListener(ctx, l) // before the client learns that it is subscribed
	defer f.removeListener(l)
	// the guard in front has checked its Origin
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }() // returns an error if the connection is closed already
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

// addListener adds a listener for events from now on. The first one starts following the runs.
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

// sendAll sends a message to all listeners.
func (f *transitionFeed) sendAll(m any) {
	text, _ := json.Marshal(m) // these messages can always be marshaled
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

// watchRuns finds runs that have begun or continued, and follows them. Events from before the watch
// are not sent.
func (f *transitionFeed) watchRuns(ctx context.Context, since int64) {
	tick := time.NewTicker(feedPause)
	defer tick.Stop()
	seen, whole := since, false
	for ctx.Err() == nil {
		if !whole {
			whole = f.scanRuns(ctx, persistence.TaskFilter{Statuses: api.Unfinished}, since, &seen) == nil
		}
		// after an error the next tick reads again
		_ = f.scanRuns(ctx, persistence.TaskFilter{ByUpdate: true}, since, &seen)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// overlap is the time range that is read again in milliseconds, because a row stored later may
// carry an earlier time.
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

// followRun sends the transitions of a run until it has ended. A run that continues after its end
// is followed again.
func (f *transitionFeed) followRun(ctx context.Context, row *persistence.TaskRow, since int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.runs[row.ID]
	switch {
	case ctx.Err() != nil: // a newer watch may own the runs by now
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

// makeRoom makes room for one more run by dropping runs that have ended.
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

// beginWithRetry calls beginRun until the store answers.
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

// beginRun reads the progress of a run that had begun before.
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
