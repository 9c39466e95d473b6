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

// definitionCost and bodyCost are the measured memory for reading a request, as a multiple of its
// size. A definition becomes nodes with positions, JSON and a plan, and may take 300 times its
// text. Any other body is copied a few times.
const (
	definitionCost = 256
	bodyCost       = 8
)

// These constants bound the memory of requests while they are read and carried out. Small requests
// have their own pool, so that they never wait for large ones. Small bodies without a definition
// are not counted.
const (
	smallBody   = 64 << 10
	largeMemory = 512 << 20
	smallMemory = 128 << 20
	// Reads of large tasks have their own pool, so that clients that do not read their answers
	// cannot block writes. Streams of large tasks have another pool, because they may last forever
	// and would otherwise block reads.
	readMemory   = 384 << 20
	followMemory = 128 << 20
	turnTime     = 3 * time.Second // how long a request waits for its turn
	bodyPause    = 5 * time.Second // longest pause between two parts of a body
)

// bodyAdmission admits as many requests with large bodies as there is memory for. A request larger
// than all the memory is admitted alone.
type bodyAdmission struct {
	large, small    *semaphore.Weighted
	atWork          *semaphore.Weighted // limits the large requests that are carried out
	reads, followed *memoryPool
	patience        time.Duration
	// limits for a body that has its turn: total time, and longest pause between two parts
	bodyTime, pause time.Duration
	definitions     *http.ServeMux // paths that accept definitions of flows
}

// outsideMemory is the memory for large requests of callers without a token. So they never delay
// callers with a token.
const outsideMemory = 64 << 20

func newAdmission(bodyTime time.Duration, large int64) *bodyAdmission {
	return &bodyAdmission{large: semaphore.NewWeighted(large), small: semaphore.NewWeighted(smallMemory),
		atWork: semaphore.NewWeighted(largeAtWork()), reads: newLane(readMemory),
		followed: newLane(followMemory), patience: turnTime, bodyTime: bodyTime, pause: bodyPause,
		definitions: http.NewServeMux()}
}

// withAdmission makes a request wait for its turn, and rejects the request after the patience.
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

// acquireTurn waits for a share of a semaphore, and reports whether the share was acquired within
// the patience.
func (a *bodyAdmission) acquireTurn(r *http.Request, of *semaphore.Weighted, part int64) bool {
	waiting, cancel := context.WithTimeout(r.Context(), a.patience)
	defer cancel()
	return of.Acquire(waiting, part) == nil
}

func tooBusy(w http.ResponseWriter, r *http.Request) {
	refuseRequest(w, r, problemOf(flow.Busy, "", "other large requests are being read", "try again in a moment, or send less at once"))
}

// largeAtWork returns how many large requests are carried out at once. A request counts from its
// complete body until it is answered or stays. Reading a megabyte takes milliseconds of a
// processor, so more large requests would delay the small ones.
func largeAtWork() int64 { return int64(max(4, 2*runtime.GOMAXPROCS(0))) }

// readWholeBody reads a whole body, up to the limit. It keeps a read error in the body, so that the
// handler gets the same error.
func readWholeBody(r *http.Request, most int64) error {
	head, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	more := io.Reader(r.Body)
	if err != nil {
		more = failedReader{err}
	}
	r.Body = &peekedBody{io.MultiReader(bytes.NewReader(head), more), r.Body}
	return err
}

// failedReader is a reader that ends with the read error of a body.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// pacedBody is a body that fails after a pause, because its request holds a turn for which others
// wait.
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
	_ = b.conn.SetReadDeadline(next) // only connections in tests have no deadlines
	n, err := b.ReadCloser.Read(p)
	_ = b.conn.SetReadDeadline(b.end) // the rest of the body may take longer
	return n, err
}

// serveWith serves a request with another context. Afterwards it copies the matched route to the
// outer request, for logs and metrics.
func serveWith(ctx context.Context, next http.Handler, w http.ResponseWriter, r *http.Request) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern = inner.Pattern }()
	next.ServeHTTP(w, inner)
}

// requestCost returns the memory cost of a request and the semaphore that limits it. A nil
// semaphore means that the request is not limited.
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

// peekBody returns the size of a small body of unknown length. For a larger body, it returns the
// greatest allowed length.
func peekBody(r *http.Request, most int64) (size int64, err error) {
	head, err := io.ReadAll(io.LimitReader(r.Body, smallBody+1))
	// a read error is returned again to the next reader of the body
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

// TakesDefinitions declares that requests to these patterns contain definitions of flows, which
// need more memory to read than other bodies.
func (s *Server) TakesDefinitions(patterns ...string) {
	for _, p := range patterns {
		s.turns.definitions.Handle(p, http.NotFoundHandler())
	}
}

func (a *bodyAdmission) isDefinition(r *http.Request) bool {
	_, pattern := a.definitions.Handler(r)
	return pattern != ""
}
