package v1

import (
	"bytes"
	"context"
	"io"
	"net/http"

	experimental "github.com/go-json-experiment/json"

	"github.com/troupe-engine/troupe/api/wire"
)

// Starts, polls and reports arrive by the thousand per second, and the framework decodes each body
// twice: once to compare it with its schema. So a request that is plainly valid is served without
// the framework. Any other request goes to the framework, which reports the faults.

// fastBody is the greatest size of a body that is read here.
const fastBody = 256 << 10

// asDescribed reads a body as strictly as its schema does: only known names, in the exact case.
var asDescribed = experimental.JoinOptions(asEncodingJSON, experimental.RejectUnknownMembers(true),
	experimental.MatchCaseInsensitiveNames(false))

// registerFast adds a fast route beside the framework's. read fills an input from a request and its
// body, and reports whether it satisfies the whole schema.
func registerFast[I, O any](rt *apiRouter, pattern, id string, read func(*http.Request, []byte,
	*I) bool, handle func(context.Context, *I) (*O, error), answer func(*O) (status int, body any)) {
	need := roles[id]
	rt.fast.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !isPlain(r) || rt.checkRole(r.Context(), need) != nil {
			rt.mux.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		in := new(I)
		// few fields allow null
		if err != nil || bytes.Contains(body, []byte("null")) || !read(r, body, in) {
			r.Body = struct {
				io.Reader
				io.Closer
				// a read error is returned again
			}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
			rt.mux.ServeHTTP(w, r)
			return
		}
		out, err := handle(r.Context(), in)
		if err == nil {
			err = rt.checkPayloads(out)
		}
		if err != nil {
			rt.toProblem(r.Context(), err).writeTo(w)
			return
		}
		status, told := answer(out)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = marshalBody(w, told) // a client that is gone needs no answer
	})
}

// isPlain reports whether a request is an ordinary one: its body is JSON, and it accepts JSON.
func isPlain(r *http.Request) bool {
	kind, takes := r.Header.Get("Content-Type"), r.Header.Get("Accept")
	return r.ContentLength > 0 && r.ContentLength <= fastBody && r.URL.RawQuery == "" && (kind == "" || kind == "application/json") &&
		(takes == "" || takes == "*/*" || takes == "application/json")
}

func (s *service) addFastRoutes() {
	s.apiRouter.fast.Handle("/", s.apiRouter.mux)
	registerFast(s.apiRouter, "POST /v1/tasks", "start-task", readStart, s.starts.startTask,
		func(o *startAnswer) (int, any) { return o.Status, o.Body })
	registerFast(s.apiRouter, "POST /v1/tasks/starts", "start-tasks", readStarts, s.starts.startTasks, bodyOf)
	registerFast(s.apiRouter, "POST /v1/workers/{worker}/poll", "poll-jobs", readPoll, s.workers.pollJobs, bodyOf)
	registerFast(s.apiRouter, "POST /v1/workers/{worker}/reports", "report-jobs", readReports, s.jobs.reportJobs, bodyOf)
}

func bodyOf[T any](o *bodyResponse[T]) (int, any) { return http.StatusOK, o.Body }

func readStart(r *http.Request, body []byte, in *startInput) bool {
	in.IdempotencyKey = r.Header.Get("Idempotency-Key")
	return experimental.Unmarshal(body, &in.Body, asDescribed) == nil && isStart(&in.Body) && len(in.IdempotencyKey) <= 200
}

func isStart(b *wire.Start) bool {
	return b.Flow != "" && b.Version >= 0 && len(b.Labels) <= 64 && len(b.IdempotencyKey) <= 200 && b.WaitMS >= 0 && b.WaitMS <= 300_000
}

func readStarts(r *http.Request, body []byte, in *startsInput) bool {
	in.IdempotencyKey = r.Header.Get("Idempotency-Key")
	all := &in.Body.Starts
	if experimental.Unmarshal(body, &in.Body, asDescribed) != nil || len(*all) == 0 || len(*all) > 1000 || len(in.IdempotencyKey) > 190 {
		return false
	}
	for i := range *all {
		if !isStart(&(*all)[i]) {
			return false
		}
	}
	return true
}

func readPoll(r *http.Request, body []byte, in *pollInput) bool {
	b := &in.Body
	return readWorker(r, &in.WorkerPath) && experimental.Unmarshal(body, b, asDescribed) == nil &&
		isWanted(&b.Wanted) && b.WaitMS >= 0 && b.WaitMS <= 60_000
}

func isWanted(w *wire.Wanted) bool {
	return len(w.Services) >= 1 && len(w.Services) <= 1000 && len(w.Labels) <= 1000 && len(w.Flow) <= 128 && w.Max >= 1 && w.Max <= 1000
}

func readReports(r *http.Request, body []byte, in *reportsInput) bool {
	all := &in.Body.Reports
	if !readWorker(r, &in.WorkerPath) || experimental.Unmarshal(body, &in.Body, asDescribed) != nil || len(*all) == 0 || len(*all) > 1000 {
		return false
	}
	if n := in.Body.Next; n != nil && !isWanted(n) {
		return false
	}
	for i := range *all { // lines have defaults that the framework fills in
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
