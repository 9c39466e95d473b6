package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
)

// LogQuery selects lines of a task's logs. Zero fields do not filter.
type LogQuery struct {
	Job     string // id of the only job
	Node    string // only node; for a node of a subflow, with the path
	Unit    *int   // only unit, from 0
	Attempt int    // only attempt, from 1
	Stream  string // log, stdout, stderr
	After   string // only lines after the line with this id; "" means from the beginning
	Limit   int    // maximum lines per page; 0 means that the server decides
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

// Logs reads a page of the lines that a task's attempts have printed, in storage order. Next is the
// After of the next page. A page may be empty and still have a Next.
func (c *Client) Logs(ctx context.Context, task string, l LogQuery) (*wire.Page[wire.LogEntry], error) {
	q := l.queryValues()
	setNonEmpty(q, "after", l.After)
	if l.Limit > 0 {
		q.Set("limit", strconv.Itoa(l.Limit))
	}
	return getJSON[wire.Page[wire.LogEntry]](ctx, c, taskPath(task, "/logs"), q)
}

// FollowLogs returns lines after l.After as a task's attempts print them, and ends with the task.
// It resumes after a broken connection, as Watch does.
func (c *Client) FollowLogs(ctx context.Context, task string, l LogQuery) iter.Seq2[wire.LogEntry, error] {
	return followStream(ctx, c, "following the logs of "+task, taskPath(task, "/logs/stream"),
		l.queryValues(), l.After, func(e *wire.LogEntry) string { return e.ID })
}
