package socket

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/history"
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

const tasksChannel = "tasks"

const (
	newsTold = 200 // maximum tasks in a message; with more, the client reads the list again
	// minimum time between two messages that make a client read the list again
	stalePace = time.Second
	newsKnown = 2000 // maximum number of ids that a listener is known to have
)

// isTasks reports whether a channel is about tasks of a filter. The text after a colon
// distinguishes several such channels of one connection.
func isTasks(channel string) bool {
	return channel == tasksChannel || strings.HasPrefix(channel, tasksChannel+":")
}

// tasksFeed sends changes of the tasks that a filter selects.
type tasksFeed struct {
	s           *Handler
	pick        *catalog.TaskPick
	filter      persistence.TaskFilter
	listedTasks map[string]bool // tasks that matched the filter at the last message
}

// streamTasks returns the function that serves a channel of tasks. It applies the same limits as
// lists.
func (h *Handler) streamTasks(sent *wire.TaskFilter) (streamFunc, error) {
	if sent == nil {
		sent = &wire.TaskFilter{}
	}
	for name, list := range map[string]struct {
		sent []string
		most int
	}{"flow": {sent.Flow, 50}, "state": {sent.State, 20}, "waiting_for": {sent.WaitingFor, 20}, "label": {sent.Label, 20}} {
		if len(list.sent) > list.most {
			return nil, route.NewInvalidError("subscribe.filter."+name,
				fmt.Sprintf("send at most %d", list.most), "there are %d of them", len(list.sent))
		}
	}
	f := &tasksFeed{s: h, pick: catalog.ToTaskPick(sent)}
	return f.streamChanges, nil
}

func (f *tasksFeed) streamChanges(ctx context.Context, to stream.Listener) error {
	l, leave := f.s.news.addListener()
	defer leave()
	select {
	case <-l.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := f.resolveFilter(ctx); err != nil {
		return err
	}
	if err := to.Open(); err != nil {
		return err
	}
	for {
		select {
		case <-l.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		rows, gap := l.takeRows()
		if err := f.sendChanges(ctx, to, rows, gap); err != nil {
			return err
		}
	}
}

// resolveFilter resolves the names in the filter to ids.
func (f *tasksFeed) resolveFilter(ctx context.Context) error {
	if err := f.s.lookups.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.s.lookups.Release(1)
	filter, err := f.s.Finder.ToFilter(ctx, f.pick)
	if err != nil {
		return route.RelocateError(err, "subscribe.filter.")
	}
	f.filter = filter
	return f.readHead(ctx)
}

// readHead records the ids on the first page of the list. The client reads the same page after the
// feed opens or becomes stale.
func (f *tasksFeed) readHead(ctx context.Context) error {
	head := f.filter
	head.Limit = newsRows
	through, err := f.s.Finder.FindSearchBound(ctx, head)
	if err != nil {
		return err
	}
	head.Through = through
	rows, err := f.s.Store.ListTasks(ctx, head)
	f.listedTasks = make(map[string]bool, len(rows))
	for i := range rows {
		f.listedTasks[rows[i].ID] = true
	}
	return err
}

func (f *tasksFeed) sendChanges(ctx context.Context, to stream.Listener, rows []*persistence.TaskRow, gap bool) error {
	news := wire.TaskNews{Changed: []wire.TaskSummary{}}
	for _, row := range rows {
		switch known := f.listedTasks[row.ID]; {
		case f.filter.Match(row):
			news.Changed = append(news.Changed, render.ToSummary(row))
			if !known {
				news.New++
				f.listedTasks[row.ID] = true
			}
		case known:
			news.Left = append(news.Left, row.ID)
			delete(f.listedTasks, row.ID)
		}
	}
	told := len(news.Changed) + len(news.Left)
	switch {
	case gap || f.filter.Queued != "" && len(rows) > 0 || told > newsTold || len(f.listedTasks) > newsKnown:
		return f.sendStale(ctx, to)
	case told == 0:
		return nil
	}
	return to.Send([]stream.Message{{Event: wire.StreamTasks, Data: history.EncodeLine(&news)}})
}

// sendStale makes the client read the list again, and restarts from there. Later changes are sent
// afterwards.
func (f *tasksFeed) sendStale(ctx context.Context, to stream.Listener) error {
	if err := f.readHead(ctx); err != nil {
		return err
	}
	if err := to.Send([]stream.Message{{Event: wire.StreamStale, Data: history.EncodeLine(struct{}{})}}); err != nil {
		return err
	}
	rest := time.NewTimer(stalePace)
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newestFirst compares tasks in the order of lists.
func newestFirst(a, b *persistence.TaskRow) int {
	return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.ID, a.ID))
}
