package tasks

import (
	"net/http"

	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
)

// addFastRoutes adds the routes for starts.
func (h *StartHandler) addFastRoutes(rt *route.Router) {
	route.RegisterFast(rt, "POST /v1/tasks", "start-task", readStart, h.startTask,
		func(o *StartAnswer) (int, any) { return o.Status, o.Body })
	route.RegisterFast(rt, "POST /v1/tasks/starts", "start-tasks", readStarts, h.startTasks, route.SplitResponse)
}

func readStart(r *http.Request, body []byte, in *startInput) bool {
	in.IdempotencyKey = r.Header.Get("Idempotency-Key")
	return route.DecodeDescribed(body, &in.Body) && isStart(&in.Body) && len(in.IdempotencyKey) <= 200
}

func isStart(b *wire.StartRequest) bool {
	return b.Flow != "" && b.Version >= 0 && len(b.Labels) <= 64 && len(b.IdempotencyKey) <= 200 &&
		b.WaitMS >= 0 && b.WaitMS <= 300_000 && len(b.WaitUntil) <= 1000
}

func readStarts(r *http.Request, body []byte, in *startsInput) bool {
	in.IdempotencyKey = r.Header.Get("Idempotency-Key")
	all := &in.Body.Starts
	if !route.DecodeDescribed(body, &in.Body) || len(*all) == 0 || len(*all) > 1000 || len(in.IdempotencyKey) > 190 {
		return false
	}
	for i := range *all {
		if !isStart(&(*all)[i]) {
			return false
		}
	}
	return true
}
