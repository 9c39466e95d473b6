package blackbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// orkWorkerChecks are checks of nodes that workers of Ork carry out.
var orkWorkerChecks = []check{
	{"an Ork worker runs a node of either mode", orkWorkerRuns},
	{"what an Ork worker refuses is tried again", orkWorkerAgain},
	{"an Ork worker has the time of its node", orkWorkerTime},
}

func TestOrkWorkersSQLite(t *testing.T)  { t.Parallel(); runChecks(t, sqliteStore, orkWorkerChecks) }
func TestOrkWorkersCluster(t *testing.T) { t.Parallel(); runChecks(t, clusterStore, orkWorkerChecks) }

// orkWorker starts a worker of Ork that answers with a function.
func orkWorker(c *client, answer func(asked obj) (int, any)) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked obj
		if r.URL.Path != "/execute" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		status, v := answer(asked)
		if status == 0 { // longer than any timeout
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}))
	c.Cleanup(s.Close)
	return s.URL
}

func orkWorkerRuns(c *client) {
	url := orkWorker(c, func(asked obj) (int, any) {
		params := asked["params"].(obj)
		return 200, obj{"status": "success", "output": obj{"ran": params["command"],
			"as": asked["executor_type"], "in": params["task_input"], "env": params["env"]}}
	})
	node := fmt.Sprintf(`{exec: {type: worker, url: %q, command: count it, env: {A: 1}}`, url)
	want := obj{"ran": "count it", "as": "process", "env": obj{"A": "1"}}
	dag := c.dag("profile: ork\nnodes:\n  a: "+node+"}", obj{"n": 7.0}).ended("completed")["result"].(obj)["a"].(obj)
	require.NotNil(c, dag["in"])
	delete(dag, "in")
	require.Equal(c, want, dag)
	graph := c.dag("start: a\nnodes:\n  a: "+node+", params: {x: 1}, post: {output_key: out}}",
		obj{}).ended("completed")["shared"].(obj)["out"].(obj)
	want["in"] = obj{"x": 1.0}
	require.Equal(c, want, graph)
}

func orkWorkerAgain(c *client) {
	var asked atomic.Int64
	url := orkWorker(c, func(obj) (int, any) {
		switch asked.Add(1) {
		case 1:
			return 200, obj{"status": "failed", "error": "no such file"}
		case 2:
			return 503, "later"
		}
		return 200, obj{"status": "success"}
	})
	d := c.dag(fmt.Sprintf("profile: ork\nnodes:\n  a: {exec: {type: worker, url: %q, file: t.py}, retry: {max_attempts: 3}}", url), obj{})
	require.Equal(c, obj{"a": nil}, d.ended("completed")["result"])
	attempts := d.attempts("a")
	require.Len(c, attempts, 3)
	require.Equal(c, "no such file", attempts[0]["error"])
	require.Contains(c, attempts[1]["error"], "503")
}

func orkWorkerTime(c *client) {
	url := orkWorker(c, func(obj) (int, any) { return 0, nil })
	d := c.dag(fmt.Sprintf("profile: ork\nnodes:\n  a: {exec: {type: worker, url: %q, command: x}, timeout: 200ms}", url), obj{})
	d.ended("failed")
	require.Equal(c, "timeout", d.attempts("a")[0]["state"])
}
