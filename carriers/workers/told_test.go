package workers

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// answering is a worker's answer in pieces: each is created when the previous one has been read.
type answering []func() (string, error)

func (a *answering) Read(b []byte) (int, error) {
	if len(*a) == 0 {
		return 0, io.EOF
	}
	text, err := (*a)[0]()
	*a = (*a)[1:]
	return copy(b, text), err
}

func (*answering) Close() error { return nil }

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{headerBatch: {"1"}}, Body: a}, nil
}

func TestASecondAnswerForAJobDoesNotEndItsBatch(t *testing.T) {
	w := &registeredWorker{Worker: persistence.Worker{ID: "w", URL: "http://w"}, workerLiveness: &workerLiveness{}}
	var calls []*batchedCall
	for n := range 2 {
		c := newCall(&flow.Job{Task: "t", Address: flow.Address{Node: "a", Visit: 1, Attempt: n + 1}, Exec: &flow.Exec{Service: "s"}})
		calls = append(calls, &batchedCall{workerCall: c, ctx: t.Context(), answered: make(chan callOutcome, 1)})
		w.batcher.enqueueCall(calls[n])
	}
	b, _ := w.batcher.takeBatch()
	text := func(s string) func() (string, error) { return func() (string, error) { return s, nil } }
	r := &Registry{opts: Options{}.orDefault(), client: &http.Client{Transport: &answering{
		text("0 {\"result\":1}\n"),
		func() (string, error) {
			require.NoError(t, (<-calls[0].answered).err) // the caller has it by now
			return "0 {\"result\":1}\n", nil
		},
		func() (string, error) {
			if b.ctx.Err() != nil {
				return "", b.ctx.Err()
			}
			return "1 {\"result\":2}\n", nil
		},
	}}}
	r.sendBatch(w, b)
	o := <-calls[1].answered
	require.NoError(t, o.err)
	require.Equal(t, "2", string(o.rep.Output))
}
