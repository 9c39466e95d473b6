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

// The memory that reading a request takes, as a multiple of its size, measured. A definition
// becomes nodes with positions, JSON and a plan, and some definitions take 300 times the bytes of
// their text. Any other body becomes a few copies of itself.
const (
	definitionCost = 256
	bodyCost       = 8
)

// The memory that requests may take while they are read and carried out. Small requests have a pool
// of their own, so that they never wait for large ones. A small body that is no definition costs
// too little to be counted.
const (
	smallBody   = 64 << 10
	largeMemory = 512 << 20
	smallMemory = 128 << 20
	// Reads of large tasks have a pool of their own, so that clients that do not read their answers
	// cannot block writes. Streams that follow large tasks have another one, because they may last
	// for ever and would otherwise block reads.
	readMemory   = 384 << 20
	followMemory = 128 << 20
	turnTime     = 3 * time.Second // how long a request waits for its turn
	bodyPause    = 5 * time.Second // how long a request that has its turn may send nothing
)

// bodyAdmission admits as many requests with large bodies as there is memory for. A request larger
// than all the memory is admitted alone.
type bodyAdmission struct {
	large, small    *semaphore.Weighted
	atWork          *semaphore.Weighted // large requests that are carried out
	reads, followed *memoryPool
	patience        time.Duration
	// for a body that has its turn: the time for the whole body, and the longest pause between two
	// parts
	bodyTime, pause time.Duration
	definitions     *http.ServeMux // the paths that take definitions of flows
}

// outsideMemory is the memory for large requests of callers without a token. They never delay
// callers with a token.
const outsideMemory = 64 << 20

func newAdmission(bodyTime time.Duration, large int64) *bodyAdmission {
	return &bodyAdmission{large: semaphore.NewWeighted(large), small: semaphore.NewWeighted(smallMemory),
		atWork: semaphore.NewWeighted(largeAtWork()), reads: newLane(readMemory),
		followed: newLane(followMemory), patience: turnTime, bodyTime: bodyTime, pause: bodyPause,
		definitions: http.NewServeMux()}
}

// withAdmission makes a request wait for its turn, and rejects it when the turn does not come soon.
func (a *bodyAdmission) withAdmission(next http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := &requestMemory{in: a.reads, patience: a.patience}
		defer read.releaseAll()
		ctx := persistence.InRoom(r.Context(), read)
		lane, cost, err := a.requestCost(r, most)
		if err != nil || lane == nil { // the handler that reads the body reports the error
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

// acquireTurn waits for its share of a semaphore and reports whether it got it within the patience.
func (a *bodyAdmission) acquireTurn(r *http.Request, of *semaphore.Weighted, part int64) bool {
	waiting, cancel := context.WithTimeout(r.Context(), a.patience)
	defer cancel()
	return of.Acquire(waiting, part) == nil
}

func tooBusy(w http.ResponseWriter, r *http.Request) {
	refuseRequest(w, r, problemOf(flow.Busy, "", "other large requests are being read", "try again in a moment, or send less at once"))
}

// largeAtWork returns how many large requests are carried out at once. A request counts from the
// time when its body is complete until it is answered or stays. Reading a megabyte takes
// milliseconds of a processor. With more large requests at once, each of the many short turns that
// make up a small request would wait behind all of them.
func largeAtWork() int64 { return int64(max(4, 2*runtime.GOMAXPROCS(0))) }

// readWholeBody reads all of a body, up to the limit. A read error is stored in the body, so the
// handler that reads it finds the error again.
func readWholeBody(r *http.Request, most int64) error {
	head, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	more := io.Reader(r.Body)
	if err != nil {
		more = failedReader{err}
	}
	r.Body = &peekedBody{io.MultiReader(bytes.NewReader(head), more), r.Body}
	return err
}

// failedReader is a reader that ends with the error of a body that could not be read.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// pacedBody is a body that must keep arriving, because its request holds a turn that other requests
// wait for.
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
	_ = b.conn.SetReadDeadline(next) // only connections of tests have no deadlines
	n, err := b.ReadCloser.Read(p)
	_ = b.conn.SetReadDeadline(b.end) // reading the rest may take longer
	return n, err
}

// serveWith passes a request on with another context. Logs and metrics read the route from the
// outer request.
func serveWith(ctx context.Context, next http.Handler, w http.ResponseWriter, r *http.Request) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern = inner.Pattern }()
	next.ServeHTTP(w, inner)
}

// requestCost returns the cost of a request and the semaphore it counts against. A nil semaphore
// means that the request is free.
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

// peekBody finds out whether a body of unknown length is small. A larger body is assumed to have
// the greatest allowed length.
func peekBody(r *http.Request, most int64) (size int64, err error) {
	head, err := io.ReadAll(io.LimitReader(r.Body, smallBody+1))
	// a read error is returned again to the next reader
	r.Body = &peekedBody{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
	if len(head) > smallBody {
		return most, nil
	}
	return int64(len(head)), err
}

// peekedBody is a body whose beginning has been read already.
type peekedBody struct {
	io.Reader
	io.Closer
}

// TakesDefinitions declares that requests to these patterns carry definitions of flows. A
// definition takes more memory to read than another body.
func (s *Server) TakesDefinitions(patterns ...string) {
	for _, p := range patterns {
		s.turns.definitions.Handle(p, http.NotFoundHandler())
	}
}

func (a *bodyAdmission) isDefinition(r *http.Request) bool {
	_, pattern := a.definitions.Handler(r)
	return pattern != ""
}
