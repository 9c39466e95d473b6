package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
)

// Streams lists the streams of a task, to which its running steps write values.
func (c *Client) Streams(ctx context.Context, task string) ([]wire.Stream, error) {
	page, err := getJSON[wire.Page[wire.Stream]](ctx, c, taskPath(task, "/streams"), nil)
	if err != nil {
		return nil, err
	}
	return page.Items, nil
}

// StreamPage reads values of a stream from an offset. Next of the page is the offset of the next
// value. limit is the maximum number of values; 0 means that the server decides.
func (c *Client) StreamPage(ctx context.Context, task, stream string, from int64, limit int) (*wire.StreamPage, error) {
	q := url.Values{"from": {strconv.FormatInt(from, 10)}}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return getJSON[wire.StreamPage](ctx, c, streamPath(task, stream), q)
}

// FollowStream returns the values of a stream from an offset as they are written. It ends with the
// stream or the task. It resumes after a broken connection, as Watch does.
func (c *Client) FollowStream(ctx context.Context, task, stream string, from int64) iter.Seq2[wire.StreamValue, error] {
	after := ""
	if from > 0 {
		after = strconv.FormatInt(from-1, 10)
	}
	return followStream(ctx, c, "following the stream "+stream+" of "+task, streamPath(task, stream), nil, after,
		func(v *wire.StreamValue) string { return strconv.FormatInt(v.Offset, 10) })
}

func streamPath(task, stream string) string {
	return taskPath(task, "/streams/"+url.PathEscape(stream))
}
