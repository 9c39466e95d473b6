package blackbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
)

// service answers a push call with a result or the text of an error.
type service func(input any, params obj) (any, string)

// pushWorker imitates the dialect's push worker: it registers once and then sends heartbeats.
type pushWorker struct {
	*httptest.Server
	id       string
	services map[string]service
	calls    atomic.Int64
}

// push starts a worker for services, registered at the server.
func (c *client) push(services map[string]service) *pushWorker {
	c.Helper()
	w := &pushWorker{id: unique("worker"), services: services}
	w.Server = httptest.NewServer(w)
	c.Cleanup(w.Close)
	c.register(w)
	stop := make(chan struct{})
	var done sync.WaitGroup
	to := c.apart()
	done.Go(func() { w.beat(to, c.prefix+"/workers/heartbeat", stop) })
	c.Cleanup(func() { close(stop); done.Wait() })
	return w
}

func (w *pushWorker) beat(to *server, path string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
			// the original only logs errors
			_, _ = postJSON(to.url()+path, obj{"id": w.id, "url": w.URL, "load": 0})
		}
	}
}

func (c *client) register(w *pushWorker) {
	c.Helper()
	offered := []string{}
	for name := range w.services {
		offered = append(offered, name)
	}
	c.post("/workers/register", obj{"id": w.id, "url": w.URL, "services": offered, "load": 0, "lastHeartbeat": 0, "type": "http"})
}

func (w *pushWorker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	serve, ok := w.services[strings.TrimPrefix(r.URL.Path, "/exec/")]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	w.calls.Add(1)
	var call struct {
		Input  any `json:"input"`
		Params obj `json:"params"`
	}
	answer := obj{"result": nil}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		answer["error"] = "bad request"
	} else if result, text := serve(call.Input, call.Params); text != "" {
		answer["error"] = text
	} else {
		answer["result"] = result
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(answer) // the engine may have given up
}

// demoServices holds the services of the dialect's push worker.
var demoServices = map[string]service{"transform": transform, "sum": sum, "route": route}

func transform(input any, params obj) (any, string) {
	switch input := input.(type) {
	case string:
		switch params["op"] {
		case "upper":
			return strings.ToUpper(input), ""
		case "lower":
			return strings.ToLower(input), ""
		}
		return nil, "unsupported op"
	case float64:
		if factor, ok := params["mul"].(float64); ok {
			return input * factor, ""
		}
		return input, ""
	}
	return nil, "bad input"
}

func sum(input any, _ obj) (any, string) {
	list, ok := input.([]any)
	if !ok {
		return nil, "bad input"
	}
	total := 0.0
	for _, v := range list {
		switch v := v.(type) {
		case float64:
			total += v
		case string:
			x, _ := strconv.ParseFloat(v, 64) // invalid numbers count as 0
			total += x
		}
	}
	return total, ""
}

func route(_ any, params obj) (any, string) {
	action, _ := params["action"].(string)
	return obj{"action": cmp.Or(action, "goB")}, ""
}

// pull starts an imitation of the dialect's pull worker. It ends with the check.
func (c *client) pull(services ...string) {
	c.Helper()
	w := &pullWorker{client: c, id: unique("async"), stop: make(chan struct{})}
	c.post("/register", obj{"id": w.id, "url": "queue", "services": services, "load": 0, "lastHeartbeat": 0, "type": "async"})
	var done sync.WaitGroup
	done.Go(func() { w.run(services) })
	c.Cleanup(func() { close(w.stop); done.Wait() })
}

type pullWorker struct {
	*client
	id   string
	stop chan struct{}
}

func (w *pullWorker) run(services []string) {
	for {
		select {
		case <-w.stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		for w.once(services) {
		}
	}
}

// once polls and carries out one entry like the dialect's worker, without its pauses.
func (w *pullWorker) once(services []string) bool {
	resp, err := postJSON(w.url()+"/api/queue/poll", obj{"worker_id": w.id, "services": services})
	if err != nil || resp == nil {
		return false
	}
	var in struct {
		Input  any    `json:"input"`
		Params obj    `json:"params"`
		RunID  string `json:"run_id"`
	}
	text, _ := resp["input_json"].(string)
	if json.Unmarshal([]byte(text), &in) != nil {
		return false
	}
	_, _ = postJSON(w.url()+"/api/queue/update_run", obj{"run_id": in.RunID, "status": "running"})
	result, failure := asyncService(resp["service"], in.Input, in.Params)
	body := obj{"queue_id": resp["id"], "run_id": in.RunID, "result": result, "error": failure, "log_path": "/etc/hostname"}
	_, err = postJSON(w.url()+"/api/queue/complete", body)
	return err == nil
}

func asyncService(name, input any, params obj) (any, string) {
	switch name {
	case "async-transform":
		if m, ok := input.(obj); ok {
			if text, ok := m["text"].(string); ok {
				return fmt.Sprintf("[%v] %s", m["title"], strings.ToUpper(text)), ""
			}
		}
		if text, ok := input.(string); ok {
			return strings.ToUpper(text) + " (ASYNC PROCESSED)", ""
		}
		if text, ok := params["text"].(string); ok {
			return strings.ToUpper(text) + " (ASYNC PROCESSED)", ""
		}
		return nil, "expected string input or params['text']"
	case "email-service":
		to, _ := params["to"].(string)
		return obj{"status": "sent", "to": to}, ""
	}
	return nil, fmt.Sprintf("unknown service: %v", name)
}

// postJSON is for goroutines that must not end a test. It returns nil without an error if there is
// no content.
func postJSON(url string, body any) (obj, error) {
	status, v, err := sendJSON(url, body)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s: %d %v", url, status, v)
	}
	return v, err
}

func sendJSON(url string, body any) (int, obj, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	resp, err := httpClient.Post(url, "application/json", strings.NewReader(string(b)))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNoContent {
		return resp.StatusCode, nil, nil
	}
	var v obj
	err = json.NewDecoder(resp.Body).Decode(&v)
	return resp.StatusCode, v, err
}

// pollQueue claims one entry; nil if there is none.
func (c *client) pollQueue(services ...string) obj {
	c.Helper()
	status, v := c.call("POST", "/queue/poll", obj{"worker_id": "by-hand", "services": services})
	if status == http.StatusNoContent {
		require.Nil(c, v)
		return nil
	}
	require.Equal(c, 200, status, "%v", v)
	return v.(obj)
}

// claim polls until there is an entry.
func (c *client) claim(services ...string) obj {
	c.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
		if q := c.pollQueue(services...); q != nil {
			return q
		}
		require.True(c, time.Now().Before(end), "no entry for %v", services)
	}
}
