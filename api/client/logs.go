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
	Job     string // only of this job
	Node    string // only of this node; in a subflow, with its path in front
	Unit    *int   // only of this unit, from 0
	Attempt int    // only of this attempt, from 1
	Stream  string // log, stdout, stderr
	After   string // only lines after the line with this id; "" = from the beginning
	Limit   int    // lines per page at most; 0 = the server's choice
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

// Logs reads a page of the lines that a task's attempts have printed, in the order in which they
// were stored. Its Next is the After of the next page; a page may be empty and still have a Next.
func (c *Client) Logs(ctx context.Context, task string, l LogQuery) (*wire.Page[wire.LogEntry], error) {
	q := l.queryValues()
	setNonEmpty(q, "after", l.After)
	if l.Limit > 0 {
		q.Set("limit", strconv.Itoa(l.Limit))
	}
	return getJSON[wire.Page[wire.LogEntry]](ctx, c, taskPath(task, "/logs"), q)
}

// FollowLogs returns lines after l.After as a task's attempts print them, and ends with the task.
// Like Watch, it resumes when a connection breaks off.
func (c *Client) FollowLogs(ctx context.Context, task string, l LogQuery) iter.Seq2[wire.LogEntry, error] {
	return followStream(ctx, c, "following the logs of "+task, taskPath(task, "/logs/stream"),
		l.queryValues(), l.After, func(e *wire.LogEntry) string { return e.ID })
}
