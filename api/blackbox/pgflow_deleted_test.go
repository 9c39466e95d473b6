package blackbox

import (
	"sync"

	"github.com/stretchr/testify/require"
)

// pgDeletedMeanwhile deletes a flow with its data while other clients read, steer and complete its
// runs. They must get results or a not-found error, and never an internal error.
func pgDeletedMeanwhile(c *client) {
	for range 12 {
		f := c.pgflow(nodeA, nodeB, "g: {kind: map, "+once+"}", "d: {route: direct}")
		runs := []*pgRun{f.run([]int{1, 2}), f.run([]int{3}), f.run([]int{4})}
		tasks := f.pollFor(deadline/2, 100)
		asked := make(chan int, 1000)
		ask := func(method, path string, body any) {
			status, _, _ := f.send(method, path, body)
			asked <- status
		}
		var all sync.WaitGroup
		for _, r := range runs {
			all.Go(func() {
				for range 4 {
					ask("GET", "/runs/"+r.id+"?tasks=true", nil)
					ask("GET", "/runs/"+r.id, nil)
					ask("GET", "/tasks/runs?task_id="+r.id, nil)
					ask("GET", "/tasks/get?id="+r.id, nil)
				}
			})
			all.Go(func() {
				ask("POST", "/runs/"+r.id+"/tasks/append", obj{"step": "g", "item": 9})
				ask("POST", "/runs/"+r.id+"/tasks/complete_direct", obj{"step": "d", "output": 1})
				ask("POST", "/runs/"+r.id+"/tasks/complete_direct", obj{"step": "d", "output": 1})
				ask("POST", "/runs/"+r.id+"/tasks/fail", obj{"step": "a"})
				ask("POST", "/runs/"+r.id+"/pause", nil)
				ask("GET", "/runs/"+r.id+"/wait?timeout_ms=100", nil)
			})
		}
		all.Go(func() {
			for _, task := range tasks {
				ask("POST", "/queue/complete", obj{"id": task["id"], "result": 1})
				ask("POST", "/queue/complete", obj{"id": task["id"], "result": 1})
			}
		})
		all.Go(func() { ask("DELETE", "/flows/"+f.slug+"?data=true", nil) })
		all.Go(func() { ask("GET", "/tasks?page_size=200", nil) })
		all.Wait()
		close(asked)
		for status := range asked {
			require.Less(c, status, 500)
		}
	}
}
