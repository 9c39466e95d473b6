package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// partly answers the first requests for many starts like a member that has room for every other
// start only.
func partly(times int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/tasks/starts" || times == 0 {
				next.ServeHTTP(w, r)
				return
			}
			times--
			var sent, some wire.BatchStartRequest
			_ = json.NewDecoder(r.Body).Decode(&sent)
			for i := 1; i < len(sent.Starts); i += 2 {
				some.Starts = append(some.Starts, sent.Starts[i])
			}
			body, _ := json.Marshal(some)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
			seen := &recorder{}
			next.ServeHTTP(seen, r)
			var answer, all wire.BatchStartResults
			_ = json.Unmarshal(seen.body, &answer)
			for _, item := range answer.Items {
				all.Items = append(all.Items,
					wire.BatchStartResult{Problem: &wire.Problem{Status: http.StatusServiceUnavailable,
						Code: "busy"}}, item)
			}
			_ = json.NewEncoder(w).Encode(all)
		})
	}
}

type recorder struct{ body []byte }

func (r *recorder) Header() http.Header { return http.Header{} }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}

func TestStartsRefusedAsBusyAreRetried(t *testing.T) {
	c := connect(t, startServer(t, partly(2)).base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	starts := slices.Repeat([]wire.StartRequest{{Flow: "waits"}}, 8)
	starts[3].IdempotencyKey = "k"
	items, err := c.StartAll(t.Context(), starts)
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, item := range items {
		require.Nil(t, item.Problem)
		require.True(t, item.Created)
		ids[item.ID] = true
	}
	require.Len(t, ids, 8)
	tasks, err := c.Tasks(t.Context(), client.TaskQuery{Flow: "waits"})
	require.NoError(t, err)
	require.Len(t, tasks.Items, 8, "none twice")

	again, err := c.StartAll(t.Context(), starts)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, []bool{again[2].Created, again[3].Created})
	require.Equal(t, items[3].ID, again[3].ID)
}

func TestManyStartsMayBeSentAgain(t *testing.T) {
	inFront, _ := full(3, busy, leaving, broken)
	c := connect(t, startServer(t, inFront).base)
	_, err := c.Publish(t.Context(), "waits", []byte(waits))
	require.NoError(t, err)
	items, err := c.StartAll(t.Context(), []wire.StartRequest{{Flow: "waits"}, {Flow: "nobody's"}})
	require.NoError(t, err)
	require.True(t, items[0].Created)
	require.Equal(t, "body.starts[1].flow", items[1].Problem.Field)
}
