package api_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
)

// reading is a server with a /v1 that reads a request and then waits until the test lets it
// continue.
type reading struct {
	*serving
	begun, goOn chan struct{}
}

func startReading(t *testing.T) *reading { return startWorking(t, 100) }

// startWorking starts a server that carries out atWork large requests at once.
func startWorking(t *testing.T, atWork int64) *reading {
	r := &reading{begun: make(chan struct{}, 100), goOn: make(chan struct{})}
	r.serving = serve(t, api.Config{Families: []api.Family{v1{http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		if q.URL.Path == "/v1/stay" {
			_, leave := stream.Stay(w, q)
			defer leave()
		}
		r.begun <- struct{}{}
		<-r.goOn
	})}}}, func(s *api.Server) {
		api.Patience(s, 50*time.Millisecond)
		api.AtWork(s, atWork)
	})
	t.Cleanup(func() { close(r.goOn) })
	return r
}

// send starts a request. It is answered when the test lets it continue.
func (r *reading) send(t *testing.T, path string, size int, unknown bool) <-chan int {
	t.Helper()
	var body io.Reader = strings.NewReader(strings.Repeat("x", size))
	if unknown {
		body = io.MultiReader(body) // hides its length
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+path, body)
	require.NoError(t, err)
	status := make(chan int, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	return status
}

func TestLargeDefinitionsAreReadOneAfterTheOther(t *testing.T) {
	r := startReading(t)
	first := r.send(t, "/v1/validate", 7<<20, false)
	<-r.begun
	for _, path := range []string{"/v1/validate", "/v1/flows", "/v1/flows/x", "/api/flows/version", "/flows/x/ensure", "/flows"} {
		resp, body := r.do(t, "POST", path, strings.Repeat("x", 7<<20))
		require.Equal(t, 429, resp.StatusCode, "%s: %s", path, body)
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
		require.Contains(t, body, "other large requests are being read")
	}
	require.Equal(t, 429, <-r.send(t, "/v1/validate", 7<<20, true), "nor is it let in when it does not say how large it is")
	require.Equal(t, 429, <-r.send(t, "/v1/tasks", 7<<20, false))
	small := []<-chan int{r.send(t, "/v1/validate", 60<<10, false),
		r.send(t, "/v1/validate", 60<<10, true), r.send(t, "/v1/tasks", 100, false)}
	for range small {
		<-r.begun // small requests need no turn
	}
	r.goOn <- struct{}{}
	r.goOn <- struct{}{}
	r.goOn <- struct{}{}
	r.goOn <- struct{}{}
	require.Equal(t, 200, <-first)
	again := r.send(t, "/v1/validate", 7<<20, false)
	<-r.begun
	r.goOn <- struct{}{}
	require.Equal(t, 200, <-again)
}

func TestOtherLargeBodiesAreReadAFewAtOnce(t *testing.T) {
	r := startReading(t)
	for range 9 {
		r.send(t, "/v1/tasks", 7<<20, false)
		<-r.begun
	}
	require.Equal(t, 429, <-r.send(t, "/v1/tasks", 7<<20, false))
}

func TestAFewLargeRequestsAreCarriedOutAtOnce(t *testing.T) {
	r := startWorking(t, 2)
	for range 2 {
		r.send(t, "/v1/tasks", 100<<10, false)
		<-r.begun
	}
	require.Equal(t, 429, <-r.send(t, "/v1/tasks", 100<<10, false))
	small := r.send(t, "/v1/tasks", 100, false)
	<-r.begun // small requests need no turn
	for range 3 {
		r.goOn <- struct{}{}
	}
	require.Equal(t, 200, <-small)
	for range 2 {
		r.send(t, "/v1/tasks", 100<<10, false)
		<-r.begun
	}
}

func TestStayingRequestsReleaseTheirMemory(t *testing.T) {
	r := startWorking(t, 1)
	for range 12 {
		r.send(t, "/v1/stay", 7<<20, false)
		<-r.begun
	}
}

func TestALargeRequestThatSendsNothingLosesItsTurn(t *testing.T) {
	ended := make(chan error)
	s := serve(t, api.Config{Families: []api.Family{v1{http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, err := io.Copy(io.Discard, q.Body)
		ended <- err
	})}}}, func(s *api.Server) { api.Pause(s, 20*time.Millisecond) })
	for _, path := range []string{"/v1/tasks", "/v1/validate"} {
		silent, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		defer silent.Close()
		_, err = io.WriteString(silent, "POST "+path+" HTTP/1.1\r\nHost: "+
			silent.RemoteAddr().String()+"\r\nContent-Length: 8000000\r\n\r\n{")
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	}
	send := func() error {
		// the answer does not matter
		go func() { _, _ = http.Post(s.url+"/v1/tasks", "", strings.NewReader(strings.Repeat("x", 7<<20))) }()
		return <-ended
	}
	for err := send(); err != nil; err = send() { // on a busy machine a request may pause for too long
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
}

func TestSmallDefinitionsAreBoundedToo(t *testing.T) {
	r := startReading(t)
	for range 8 {
		r.send(t, "/v1/validate", 64<<10, false)
		<-r.begun
	}
	require.Equal(t, 429, <-r.send(t, "/v1/validate", 64<<10, false))
}
