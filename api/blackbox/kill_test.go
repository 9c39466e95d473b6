package blackbox

import (
	"github.com/stretchr/testify/require"
)

// kill kills a server while tasks wait for a time, a signal, a poller and a claim.
func kill(shared *client) {
	p := startProcess(shared.T, shared.kind)
	c := newClient(shared.T, p.server)
	service := unique("svc")
	c.worker(service)
	timed := c.start(timerNode(8000), obj{"v": 1})
	c.until(timed, "at the timer", func(t obj) bool { _, ok := c.rt(t, "tm:t"); return ok })
	waiting := c.start(waitForever, obj{})
	queued := c.start(queueNode(service), obj{"in": 1})
	other := unique("other")
	claimed := c.start(queueNode(other), obj{"in": 2})
	for _, task := range []string{queued, claimed} {
		c.untilStatus(task, "waiting_queue")
	}
	held := c.claim(other)
	c.until(waiting, "waiting", func(t obj) bool { _, ok := c.rt(t, "we:w"); return ok })

	p.restart(shared.T)
	require.Len(c, c.list("/workers/list?ttl=3600&service="+service), 1, "the registry is kept")
	c.post("/queue/complete", obj{"queue_id": held["id"], "token": held["token"], "result": "kept"})
	c.shared(c.ends(claimed, "completed"), `{"out":"kept"}`)
	c.post("/queue/complete", obj{"queue_id": c.claim(service)["id"], "result": "polled"})
	c.shared(c.ends(queued, "completed"), `{"out":"polled"}`)
	c.signal(waiting, "go", true)
	c.shared(c.ends(waiting, "completed"), `{"go":true,"got":true}`)
	c.shared(c.ends(timed, "completed"), `{"out":1}`)
}
