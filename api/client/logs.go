package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
)

// LogQuery picks lines of a task's logs. Zero fields do not filter.
type LogQuery struct {
	Job     string // only of this job
	Node    string // only of this node; one of a flow inside has its path before it
	Unit    *int   // only of this unit, from 0
	Attempt int    // only of this attempt, from 1
	Stream  string // log, stdout, stderr
	After   string // only behind the line with this id; "" = from the beginning
	Limit   int    // how many lines a page has at most; 0 = as many as the server likes
}

func (l LogQuery) queryValues() url.Values {
	q := url.Values{}
	setNonEmpty(q, "job", l.Job)
	setNonEmpty(q, "node", l.Node)
	setNonEmpty(q, "stream", l.Stream)
	if l.Unit != nil {
		q.Set("unit", strconv.Itoa(*l.Unit))
	}
	if l.Attempt > 0 {
		q.Set("attempt", strconv.Itoa(l.Attempt))
	}
	return q
}

// Logs reads a page of what a task's attempts have printed, in the order in which it was stored.
// Its Next is the After of the next one; a page may be empty and have one.
func (c *Client) Logs(ctx context.Context, task string, l LogQuery) (*wire.Page[wire.LogEntry], error) {
	q := l.queryValues()
	setNonEmpty(q, "after", l.After)
	if l.Limit > 0 {
		q.Set("limit", strconv.Itoa(l.Limit))
	}
	return getJSON[wire.Page[wire.LogEntry]](ctx, c, taskPath(task, "/logs"), q)
}

// FollowLogs gives what a task's attempts print, from behind l.After on, as they do, and ends with
// the task. It goes on like Watch when a connection breaks off.
func (c *Client) FollowLogs(ctx context.Context, task string, l LogQuery) iter.Seq2[wire.LogEntry, error] {
	return followStream(ctx, c, "following the logs of "+task, taskPath(task, "/logs/stream"), l.queryValues(), l.After, func(e *wire.LogEntry) string { return e.ID })
}
