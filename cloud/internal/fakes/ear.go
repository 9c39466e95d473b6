package fakes

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is a recorded request.
type Request struct {
	At            time.Time
	Method, Path  string // path with query
	Authorization string
}

// Refusal is the answer to a request that is refused, or whose real answer is lost.
type Refusal struct {
	Match  string // end of its method and path; "" for any
	Status int    // 0 to break the connection
	Text   string
	After  string // Retry-After header
	Done   bool   // the request is carried out before
	Then   func() // called before the answer
}

// requestRecorder records requests and refuses those that it has to.
type requestRecorder struct {
	isAuthorized func(authorization string) bool
	// writes an error in the format of the API
	refuse func(w http.ResponseWriter, status int, text string)

	mu       sync.Mutex
	requests []Request
	next     []Refusal
}

// Refuse sets the answers to the next matching requests, one each.
func (e *requestRecorder) Refuse(list ...Refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next = append(e.next, list...)
}

// Requests returns the requests since the last Forget.
func (e *requestRecorder) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Forget deletes the recorded requests.
func (e *requestRecorder) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = nil
}

// recordFirst records every request before it is carried out.
func (e *requestRecorder) recordFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization := r.Header.Get("Authorization")
		e.mu.Lock()
		e.requests = append(e.requests, Request{time.Now(), r.Method, r.URL.RequestURI(), authorization})
		e.mu.Unlock()
		if !e.isAuthorized(authorization) {
			e.refuse(w, http.StatusUnauthorized, "Request had invalid authentication credentials.")
			return
		}
		f, ok := e.takeRefusal(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if f.Done {
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		if f.Then != nil {
			f.Then()
		}
		if f.Status == 0 {
			panic(http.ErrAbortHandler)
		}
		if f.After != "" {
			w.Header().Set("Retry-After", f.After)
		}
		e.refuse(w, f.Status, f.Text)
	})
}

func (e *requestRecorder) takeRefusal(r *http.Request) (Refusal, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.next, func(f Refusal) bool { return strings.HasSuffix(r.Method+" "+r.URL.Path, f.Match) })
	if i < 0 {
		return Refusal{}, false
	}
	f := e.next[i]
	e.next = slices.Delete(e.next, i, i+1)
	return f, true
}
