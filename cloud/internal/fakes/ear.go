package fakes

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is one that was heard.
type Request struct {
	At            time.Time
	Method, Path  string // with the query
	Authorization string
}

// Refusal is how a request is answered that is not carried out, or whose answer is lost.
type Refusal struct {
	Match  string // the end of its method and path; "" = any
	Status int    // 0 = the connection breaks
	Text   string
	After  string // Retry-After
	Done   bool   // it is carried out before
	Then   func() // is called then, before the answer
}

// requestRecorder writes down what is requested, and refuses what is to be refused.
type requestRecorder struct {
	isAuthorized func(authorization string) bool
	refuse       func(w http.ResponseWriter, status int, text string) // in the words of the API

	mu       sync.Mutex
	requests []Request
	next     []Refusal
}

// Refuse has the next matching request answered so; several are for one after the other.
func (e *requestRecorder) Refuse(list ...Refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next = append(e.next, list...)
}

// Requests are those since the last Forget.
func (e *requestRecorder) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Forget forgets what was requested.
func (e *requestRecorder) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = nil
}

// recordFirst has everything heard before it is carried out.
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
