package worker_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/worker"
)

// together posts several jobs to a push worker with one request.
func together(t *testing.T, url, batch, body string) *http.Response {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/exec", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Troupe-Batch", batch)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	require.NotEmpty(t, resp.Header.Get("Troupe-Batch"))
	return resp
}

func TestJobsThatArePushedTogetherAreAnsweredAsTheyEnd(t *testing.T) {
	e := newEngine(t)
	w := worker.New(pushConfig(e))
	release := make(chan struct{})
	w.Handle("slow", func(context.Context, worker.Job) (any, error) { <-release; return "slow", nil })
	w.Handle("echo", func(_ context.Context, j worker.Job) (any, error) {
		return []any{j.ID, j.Input, j.Params, j.Task, j.Flow, j.Step, j.Unit, j.Units, j.Attempt, j.Labels, j.Trace}, nil
	})
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me := <-e.registered
	resp := together(t, me.URL, "b",
		`{"job":"j0","service":"slow","input":1,"params":{}}`+
			`{"job":"j1","service":"echo","task":"t","flow":"f","step":"s","unit":2,"units":3,"attempt":4,`+
			`"labels":["gpu"],"trace":"00-1","input":{"n":1},"params":{"p":2}}`)
	in := bufio.NewReader(resp.Body)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, `1 {"result":["j1",{"n":1},{"p":2},"t","f","s",2,3,4,["gpu"],"00-1"]}`+"\n",
		line, "it does not wait for the one before it")
	close(release)
	line, err = in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, `0 {"result":"slow"}`+"\n", line)
	require.Equal(t, "0 \n", readAll(t, together(t, me.URL, "c", `{"job":"j","service":"nope"}`)), "another worker may know it")
	require.Equal(t, http.StatusBadRequest, together(t, me.URL, "d", `{"job":`).StatusCode)
	_, single := post(t, t.Context(), me.URL+"/exec/slow", `{}`)
	require.Equal(t, `{"result":"slow"}`+"\n", single)
}

func readAll(t *testing.T, resp *http.Response) string {
	var all strings.Builder
	_, err := bufio.NewReader(resp.Body).WriteTo(&all)
	require.NoError(t, err)
	return all.String()
}

func TestOneOfSeveralPushedJobsMayBeWithdrawn(t *testing.T) {
	e := newEngine(t)
	w := worker.New(pushConfig(e))
	begun, release := make(chan struct{}, 2), make(chan struct{})
	w.Handle("s", func(ctx context.Context, _ worker.Job) (any, error) {
		begun <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-release:
			return "done", nil
		}
	})
	run(t, w)
	defer http.DefaultClient.CloseIdleConnections()
	me := <-e.registered
	answers := make(chan string, 2)
	go func() {
		in := bufio.NewReader(together(t, me.URL, "b", `{"job":"j0","service":"s"}{"job":"j1","service":"s"}`).Body)
		for range 2 {
			line, _ := in.ReadString('\n')
			answers <- line
		}
	}()
	<-begun
	<-begun
	require.Empty(t, readAll(t, together(t, me.URL, "another", `{"withdrawn":0}`)))
	require.Empty(t, readAll(t, together(t, me.URL, "b", `{"withdrawn":0}`)))
	require.Equal(t, `0 {"result":null,"error":"context canceled"}`+"\n", <-answers)
	close(release)
	require.Equal(t, `1 {"result":"done"}`+"\n", <-answers)
}
