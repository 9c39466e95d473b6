package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// What reading a request takes, by measurement: a definition becomes nodes with positions, JSON and
// a plan, of which some take 300 times the bytes of their text; any other body becomes a few copies
// of itself.
const (
	definitionCost = 256
	bodyCost       = 8
)

// The memory that requests may take while they are read and carried out. Small ones have some of
// their own, so that they never wait for large ones; what is small and no definition costs too
// little to be counted.
const (
	smallBody   = 64 << 10
	largeMemory = 512 << 20
	smallMemory = 128 << 20
	// Large tasks that are read have memory of their own, so that answers nobody reads keep nobody
	// from writing; and those that are followed have some, so that these, which may take for ever,
	// keep nobody from reading.
	readMemory   = 384 << 20
	followMemory = 128 << 20
	turnTime     = 3 * time.Second // how long one waits for its turn
	bodyPause    = 5 * time.Second // how long one that has its turn may send nothing
)

// bodyAdmission lets in as many requests with large bodies as there is memory for. One that is
// larger than all of that is alone.
type bodyAdmission struct {
	large, small    *semaphore.Weighted
	atWork          *semaphore.Weighted // large ones that are carried out
	reads, followed *memoryPool
	patience        time.Duration
	bodyTime, pause time.Duration  // for a body that has its turn: for all of it, and between two parts
	definitions     *http.ServeMux // the paths that take definitions of flows
}

// outsideMemory is what the large requests of those may take who have no token: they keep nobody
// waiting who has one.
const outsideMemory = 64 << 20

func newAdmission(bodyTime time.Duration, large int64) *bodyAdmission {
	return &bodyAdmission{large: semaphore.NewWeighted(large), small: semaphore.NewWeighted(smallMemory),
		atWork: semaphore.NewWeighted(largeAtWork()), reads: newLane(readMemory), followed: newLane(followMemory), patience: turnTime, bodyTime: bodyTime, pause: bodyPause, definitions: http.NewServeMux()}
}

// withAdmission has a request wait for its turn, and refuses it when that does not come soon.
func (a *bodyAdmission) withAdmission(next http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := &requestMemory{in: a.reads, patience: a.patience}
		defer read.releaseAll()
		ctx := persistence.InRoom(r.Context(), read)
		lane, cost, err := a.requestCost(r, most)
		if err != nil || lane == nil { // what is wrong with a body is found by whoever reads it
			serveWith(stream.OnStay(ctx, func() { read.moveTo(a.followed) }), next, w, r)
			return
		}
		if !a.acquireTurn(r, lane, cost) {
			tooBusy(w, r)
			return
		}
		leaveLane := sync.OnceFunc(func() { lane.Release(cost) })
		defer leaveLane()
		r.Body = &pacedBody{r.Body, http.NewResponseController(w), a.pause, time.Now().Add(a.bodyTime)}
		if err := readWholeBody(r, most); err != nil {
			serveWith(ctx, next, w, r)
			return
		}
		if !a.acquireTurn(r, a.atWork, 1) {
			tooBusy(w, r)
			return
		}
		leave := sync.OnceFunc(func() {
			a.atWork.Release(1)
			leaveLane()
		})
		defer leave()
		stay := func() {
			leave()
			read.moveTo(a.followed)
		}
		serveWith(stream.OnStay(ctx, stay), next, w, r)
	})
}

// acquireTurn waits for a part of what others have.
func (a *bodyAdmission) acquireTurn(r *http.Request, of *semaphore.Weighted, part int64) bool {
	waiting, cancel := context.WithTimeout(r.Context(), a.patience)
	defer cancel()
	return of.Acquire(waiting, part) == nil
}

func tooBusy(w http.ResponseWriter, r *http.Request) {
	refuseRequest(w, r, problemOf(flow.Busy, "", "other large requests are being read", "try again in a moment, or send less at once"))
}

// largeAtWork is how many large requests are carried out at once, from when their bodies are there
// until they are answered or stay. Reading a megabyte takes milliseconds of a processor: if more
// did that at once, each of the many short turns that make a small request would come behind all of
// them.
func largeAtWork() int64 { return int64(max(4, 2*runtime.GOMAXPROCS(0))) }

// readWholeBody waits for all of a body, as far as it may go. What is wrong with it is found again
// by whoever reads it.
func readWholeBody(r *http.Request, most int64) error {
	head, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	more := io.Reader(r.Body)
	if err != nil {
		more = failedReader{err}
	}
	r.Body = &peekedBody{io.MultiReader(bytes.NewReader(head), more), r.Body}
	return err
}

// failedReader is the end of a body that could not be read.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// pacedBody is a body that has to keep coming: its request has the turn of others.
type pacedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	pause time.Duration
	end   time.Time
}

func (b *pacedBody) Read(p []byte) (int, error) {
	next := time.Now().Add(b.pause)
	if next.After(b.end) {
		next = b.end
	}
	_ = b.conn.SetReadDeadline(next) // only connections of tests have none
	n, err := b.ReadCloser.Read(p)
	_ = b.conn.SetReadDeadline(b.end) // what follows may take longer
	return n, err
}

// serveWith passes a request on with another context. Logs and metrics ask the outer request for
// its route.
func serveWith(ctx context.Context, next http.Handler, w http.ResponseWriter, r *http.Request) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern = inner.Pattern }()
	next.ServeHTTP(w, inner)
}

// requestCost says what a request costs, and where; no lane = nothing.
func (a *bodyAdmission) requestCost(r *http.Request, most int64) (lane *semaphore.Weighted, cost int64, err error) {
	size := r.ContentLength
	if size < 0 {
		if size, err = peekBody(r, most); err != nil {
			return nil, 0, err
		}
	}
	definition := size > 0 && a.isDefinition(r)
	size = min(size, most)
	switch {
	case size > smallBody && definition:
		return a.large, min(size*definitionCost, largeMemory), nil
	case size > smallBody:
		return a.large, min(size*bodyCost, largeMemory), nil
	case definition:
		return a.small, size * definitionCost, nil
	}
	return nil, 0, nil
}

// peekBody finds out whether a body of unknown length is small. One that is not may be of any
// length.
func peekBody(r *http.Request, most int64) (size int64, err error) {
	head, err := io.ReadAll(io.LimitReader(r.Body, smallBody+1))
	r.Body = &peekedBody{io.MultiReader(bytes.NewReader(head), r.Body), r.Body} // an error comes again
	if len(head) > smallBody {
		return most, nil
	}
	return int64(len(head)), err
}

// peekedBody is a body of which some has been read.
type peekedBody struct {
	io.Reader
	io.Closer
}

// TakesDefinitions says that what is sent to paths of these patterns are definitions of flows: to
// read one takes more memory than to read another body.
func (s *Server) TakesDefinitions(patterns ...string) {
	for _, p := range patterns {
		s.turns.definitions.Handle(p, http.NotFoundHandler())
	}
}

func (a *bodyAdmission) isDefinition(r *http.Request) bool {
	_, pattern := a.definitions.Handler(r)
	return pattern != ""
}
