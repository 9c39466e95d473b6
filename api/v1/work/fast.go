package work

import (
	"net/http"

	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
)

// addFastRoutes adds the routes for polls and reports.
func (h *JobHandler) addFastRoutes(rt *route.Router) {
	route.RegisterFast(rt, "POST /v1/workers/{worker}/poll", "poll-jobs", readPoll, h.Workers.pollJobs, route.SplitResponse)
	route.RegisterFast(rt, "POST /v1/workers/{worker}/reports", "report-jobs", readReports, h.reportJobs, route.SplitResponse)
}

func readPoll(r *http.Request, body []byte, in *pollInput) bool {
	b := &in.Body
	return readWorker(r, &in.WorkerPath) && route.DecodeDescribed(body, b) &&
		isWanted(&b.JobRequest) && b.WaitMS >= 0 && b.WaitMS <= 60_000
}

func isWanted(w *wire.JobRequest) bool {
	return len(w.Services) >= 1 && len(w.Services) <= 1000 && len(w.Labels) <= 1000 && len(w.Flow) <= 128 && w.Max >= 1 && w.Max <= 1000
}

func readReports(r *http.Request, body []byte, in *reportsInput) bool {
	all := &in.Body.Reports
	if !readWorker(r, &in.WorkerPath) || !route.DecodeDescribed(body, &in.Body) || len(*all) == 0 || len(*all) > 1000 {
		return false
	}
	if n := in.Body.Next; n != nil && !isWanted(n) {
		return false
	}
	for i := range *all { // the framework must fill in defaults of lines
		if b := &(*all)[i]; b.Job == "" || len(b.Job) > 4000 || b.Token == "" || len(b.Token) > 256 || len(b.Lines) > 0 || b.LinesFrom < 0 {
			return false
		}
	}
	return true
}

func readWorker(r *http.Request, in *WorkerPath) bool {
	in.Worker = r.PathValue("worker")
	return in.Worker != "" && len(in.Worker) <= 256
}
