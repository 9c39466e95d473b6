package blackbox

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// counter is a service of a push worker that counts concurrent jobs, by input, and holds all of
// them until the test frees them.
type counter struct {
	mu       sync.Mutex
	now, top map[string]int
	came     chan string
	free     chan struct{}
	letGo    func() // frees current and later jobs
}

func newCounter() *counter {
	n := &counter{now: map[string]int{}, top: map[string]int{}, came: make(chan string, 100), free: make(chan struct{})}
	n.letGo = sync.OnceFunc(func() { close(n.free) })
	return n
}

func (n *counter) serve(input any, _ obj) (any, string) {
	key := fmt.Sprint(input)
	n.add(key, 1)
	n.came <- key
	<-n.free
	n.add(key, -1)
	return input, ""
}

func (n *counter) add(key string, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now[key] += by
	n.top[key] = max(n.top[key], n.now[key])
}

func keyNode(service, key string) string {
	return fmt.Sprintf(
		`{"start":"x","nodes":{"x":{"service":%q,"timeout_ms":3600000,"prep":{"input_key":"$params.key"},"post":{"output_key":"out"},
		"concurrency":{"name":%q,"key":"$params.key","limit":2}}}}`, service, key)
}

// limitOfAKey starts tasks of two flows on all members in turn. All members share the limit of a
// key.
func limitOfAKey(c *client) {
	svc, name, n := unique("svc"), unique("key"), newCounter()
	c.push(map[string]service{svc: n.serve})
	c.Cleanup(n.letGo) // the server waits for its handlers
	one, _ := c.flow(keyNode(svc, name))
	other, _ := c.flow(keyNode(svc, name))
	var tasks []string
	for i := range 24 {
		key := fmt.Sprintf("k%d", i%3)
		tasks = append(tasks, c.task([]string{one, other}[i%2], obj{"key": key}))
	}
	for range 6 {
		<-n.came
	}
	require.Eventually(c, func() bool { return c.waitForKey(name, tasks) == 18 }, deadline, time.Millisecond)
	n.letGo()
	for _, task := range tasks {
		c.ends(task, "completed")
	}
	require.Equal(c, map[string]int{"k0": 2, "k1": 2, "k2": 2}, n.top)
}

// waitForKey counts the tasks that wait for a key with limit three.
func (c *client) waitForKey(name string, tasks []string) (n int) {
	v1 := &client{T: c.T, server: c.server}
	for i, task := range tasks {
		for _, w := range objects(c, v1.get("/v1/tasks/" + task + "/waiting")["waits"]) {
			if w["kind"] == "permit" {
				require.Contains(c, w["text"], fmt.Sprintf("it waits for jobs:%s:k%d, of which 2 may be under way at once", name, i%3))
				n++
			}
		}
	}
	return n
}

// pgKeyOfADeletedFlow deletes a flow whose run has the only permit of a key, for which another
// flow's run waits.
func pgKeyOfADeletedFlow(c *client) {
	keyed := `concurrency: {name: ` + unique("key") + `, limit: 1}`
	has := c.pgflow("a: {route: queue, service: has, " + keyed + "}")
	has.run(obj{})
	has.one("a")
	waits := c.pgflow("a: {route: queue, service: waits, " + keyed + "}")
	waits.run(obj{})
	status, v := c.call("DELETE", "/flows/"+has.slug+"?data=true", nil)
	require.Equal(c, 200, status, "%v", v)
	waits.one("a")
}
