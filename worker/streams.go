package worker

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/streambuffer"
)

// openStreams returns the buffer for the streams of a job. Workers of all kinds send the values by
// HTTP to a member. The answer confirms that the values are stored.
func (w *Worker) openStreams(ctx context.Context, job, token string) *streambuffer.Buffer {
	path := "/jobs/" + url.PathEscape(job) + "/streams"
	return streambuffer.New(ctx, func(ctx context.Context, writes []streambuffer.Write) ([]error, error) {
		var answer wire.StreamWriteResults
		err := w.server.postJSON(ctx, path, wire.StreamWrites{Token: token, Writes: toWireWrites(writes)}, &answer, requestTime)
		if isRefused(err) {
			return slices.Repeat([]error{err}, len(writes)), nil
		}
		return problemsOf(answer.Items), err
	})
}

// isRefused reports whether the engine permanently rejects the values of a job.
func isRefused(err error) bool {
	switch status := statusOf(err); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}

// problemsOf returns the error of each write; nil for a write that succeeded.
func problemsOf(items []wire.StreamWriteResult) []error {
	errs := make([]error, len(items))
	for i := range items {
		if p := items[i].Problem; p != nil {
			errs[i] = errors.New(p.Message)
		}
	}
	return errs
}

func toWireWrites(writes []streambuffer.Write) []wire.StreamWrite {
	list := make([]wire.StreamWrite, len(writes))
	for i, w := range writes {
		list[i] = wire.StreamWrite{Stream: w.Stream, Writer: w.Source, Number: w.Number, At: wire.Millis(w.At), Step: w.Step, Try: w.Try,
			Values: w.Values, Ends: w.Ends}
	}
	return list
}
