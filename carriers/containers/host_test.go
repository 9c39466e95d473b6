package containers

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/tenure"
)

// fakeHost is a container host with configurable answers, which records its requests.
type fakeHost struct {
	mu      sync.Mutex
	asked   []string
	answers map[string]http.HandlerFunc // by method and path
}

var version = regexp.MustCompile(`^/v[0-9.]+`)

func (h *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.Method + " " + version.ReplaceAllString(r.URL.Path, "")
	if strings.HasSuffix(what, "/_ping") {
		w.Header().Set("Api-Version", "1.44")
		return
	}
	h.mu.Lock()
	if what != "GET /containers/json" { // the service repeats it
		h.asked = append(h.asked, what)
	}
	answer := h.answers[what]
	h.mu.Unlock()
	if answer == nil {
		http.Error(w, `{"message":"no such thing"}`, http.StatusNotFound)
		return
	}
	answer(w, r)
}

// answer sets the answers of the host.
func (h *fakeHost) answer(answers map[string]http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = answers
}

func (h *fakeHost) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.asked...)
}

// says returns a handler with a fixed answer.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// on returns a service on this host.
func (h *fakeHost) on(t *testing.T, o Options) *Service {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o.Allow, o.Host, o.Logger = true, "tcp://"+strings.TrimPrefix(server.URL, "http://"), slog.New(slog.DiscardHandler)
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestNamedExternalWorkReachesNoForeignContainer(t *testing.T) {
	h := &fakeHost{}
	s := h.on(t, Options{Store: "s"})
	job := flow.JobID("t", flow.Address{Node: "a", Visit: 1, Attempt: 1})
	for _, id := range []string{"database", s.containerName("another"), "", "../images/x"} {
		x := flow.External{Service: Name, ID: id, Job: job}
		status, err := s.Poll(t.Context(), x)
		require.NoError(t, err)
		require.True(t, status.Ended)
		require.Contains(t, status.Error, "was not begun for this attempt")
		require.NoError(t, s.Cancel(t.Context(), x))
		s.Ended(t.Context(), x)
	}
	require.Empty(t, h.all())
	_, err := s.Poll(t.Context(), flow.External{Service: Name, ID: s.containerName(job), Job: job})
	require.NoError(t, err)
	require.Equal(t, []string{"GET /containers/" + s.containerName(job) + "/json"}, h.all())
}

func TestAMountReplacedWhileItsContainerWaitsIsRefused(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	data := filepath.Join(dir, "data")
	require.NoError(t, os.Mkdir(data, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
	for to, fails := range map[string]string{"": "", outside: "outside of the folder", filepath.Join(dir, "other"): "has been replaced"} {
		h := &fakeHost{}
		s := h.on(t, Options{Store: "s", Dir: dir})
		job := jobOf(flow.Program{}, flow.Container{Image: "x", Mounts: []flow.Mount{{From: "data", To: "/data"}}})
		at := "/containers/" + s.containerName(job.ID())
		h.answer(map[string]http.HandlerFunc{
			"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
				if to != "" {
					require.NoError(t, os.Remove(data))
					require.NoError(t, os.Symlink(to, data))
				}
				says(http.StatusCreated, `{"Id":"1"}`)(w, r)
			},
			"GET /containers/json":  says(http.StatusOK, "[]"),
			"GET " + at + "/json":   says(http.StatusOK, `{"Mounts":[{"Type":"bind","Source":"`+data+`","Destination":"/data"}]}`),
			"POST " + at + "/start": says(http.StatusNoContent, ""),
			"DELETE " + at:          says(http.StatusNoContent, ""),
		})
		report := s.Carry(t.Context(), *job)
		if fails == "" {
			require.Empty(t, report.Error)
			require.Contains(t, h.all(), "POST "+at+"/start")
			continue
		}
		require.Contains(t, report.Error, fails)
		require.NotContains(t, h.all(), "POST "+at+"/start")
		require.Contains(t, h.all(), "DELETE "+at)
		require.NoError(t, os.Remove(data))
		require.NoError(t, os.Mkdir(data, 0o755))
	}
}

func TestAContainerIsOnlyInNetworksThatTheOperatorAllows(t *testing.T) {
	for _, c := range []struct {
		allowed []string
		network string
		fits    bool
	}{
		{nil, "", true}, {nil, "none", true}, {nil, "bridge", true}, {nil, "data", true}, {nil, "host", false},
		{[]string{"host"}, "host", true}, {[]string{"host"}, "", true},
		{[]string{"host"}, "none", true}, {[]string{"host"}, "data", false},
		{[]string{"data"}, "host", false},
	} {
		h := &fakeHost{}
		s := h.on(t, Options{Store: "s", Networks: c.allowed})
		job := jobOf(flow.Program{}, flow.Container{Image: "x", Network: c.network})
		at, made := "/containers/"+s.containerName(job.ID()), ""
		h.answer(map[string]http.HandlerFunc{
			"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
				var asked struct{ HostConfig struct{ NetworkMode string } }
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
				made = asked.HostConfig.NetworkMode
				says(http.StatusCreated, `{"Id":"1"}`)(w, r)
			},
			"GET /containers/json":  says(http.StatusOK, "[]"),
			"GET " + at + "/json":   says(http.StatusOK, `{}`),
			"POST " + at + "/start": says(http.StatusNoContent, ""),
		})
		report := s.Carry(t.Context(), *job)
		if c.fits {
			require.Empty(t, report.Error, "%+v", c)
			require.Equal(t, c.network, made)
			continue
		}
		require.Contains(t, report.Error, "--container-networks", "%+v", c)
		require.True(t, report.Fatal)
		require.Empty(t, h.all())
	}
}

func TestAMemberWithoutItsLeaseStartsNoContainer(t *testing.T) {
	job := jobOf(flow.Program{}, flow.Container{Image: "x"})
	for at, want := range map[string]int32{"while it fetches the image": 1, "while the container waits for its turn": 2} {
		t.Run(at, func(t *testing.T) {
			h := &fakeHost{}
			s := h.on(t, Options{Store: "s"})
			path := "/containers/" + s.containerName(job.ID())
			var creations atomic.Int32
			var lost atomic.Bool
			h.answer(map[string]http.HandlerFunc{
				"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
					if creations.Add(1) == 1 {
						says(http.StatusNotFound, `{"message":"no such image"}`)(w, r)
						return
					}
					says(http.StatusCreated, `{"Id":"1"}`)(w, r)
				},
				"POST /images/create": func(http.ResponseWriter, *http.Request) { lost.Store(want == 1) },
				"GET /containers/json": func(w http.ResponseWriter, r *http.Request) {
					if creations.Load() == 2 {
						lost.Store(true)
					}
					says(http.StatusOK, "[]")(w, r)
				},
				"GET " + path + "/json":   says(http.StatusOK, `{}`),
				"POST " + path + "/start": says(http.StatusNoContent, ""),
				"DELETE " + path:          says(http.StatusNoContent, ""),
			})
			report := s.Carry(tenure.With(t.Context(), func() bool { return !lost.Load() }), *job)
			require.Contains(t, report.Error, "has lost its lease")
			require.Equal(t, want, creations.Load())
			require.NotContains(t, h.all(), "POST "+path+"/start")
			require.NotContains(t, h.all(), "DELETE "+path, "it may be another member's by now")
		})
	}
}

// TestAContainerThatStartsDuringTheCheckIsCounted starts a container after the host has listed the
// running ones, and before the list is read.
func TestAContainerThatStartsDuringTheCheckIsCounted(t *testing.T) {
	h := &fakeHost{}
	s := h.on(t, Options{Store: "s", Most: 1})
	one, two := jobOf(flow.Program{}, flow.Container{Image: "x"}), jobOf(flow.Program{}, flow.Container{Image: "x"})
	two.Unit++
	require.NotEqual(t, one.ID(), two.ID())
	var running, looks atomic.Int32
	starting, listed, started := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h.answer(map[string]http.HandlerFunc{
		"POST /containers/create": says(http.StatusCreated, `{"Id":"1"}`),
		"GET /containers/json": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("all") != "" { // a request of the sweeper
				says(http.StatusOK, "[]")(w, r)
				return
			}
			answer := []string{"[]", `[{"Id":"1"}]`}[running.Load()]
			switch looks.Add(1) {
			case 2: // the first one of the second container
				close(listed)
				<-started
			case 3:
				running.Store(0)
			}
			says(http.StatusOK, answer)(w, r)
		},
		"POST /containers/" + s.containerName(one.ID()) + "/start": func(w http.ResponseWriter, r *http.Request) {
			close(starting)
			<-listed
			running.Store(1)
			says(http.StatusNoContent, "")(w, r)
		},
		"POST /containers/" + s.containerName(two.ID()) + "/start": func(w http.ResponseWriter, r *http.Request) {
			assert.Zero(t, running.Load(), "the first one still runs")
			says(http.StatusNoContent, "")(w, r)
		},
	})
	go func() {
		defer close(started)
		assert.Empty(t, s.Carry(t.Context(), *one).Error)
	}()
	<-starting
	require.Empty(t, s.Carry(t.Context(), *two).Error)
}

func TestAnUnremovableContainerDoesNotBlockTheSweep(t *testing.T) {
	h := &fakeHost{answers: map[string]http.HandlerFunc{
		"GET /containers/json": says(http.StatusOK, `[{"Id":"1","Labels":{"troupe.job":"a"}},{"Id":"2","Labels":{"troupe.job":"b"}}]`),
		"DELETE /containers/1": says(http.StatusInternalServerError, `{"message":"stuck"}`),
		"DELETE /containers/2": says(http.StatusNoContent, ""),
	}}
	s := h.on(t, Options{Store: "s", Live: func(context.Context, string) (bool, error) { return false, nil }})
	require.ErrorContains(t, s.sweepOnce(), "stuck")
	require.Contains(t, h.all(), "DELETE /containers/2")
}

func TestATruncatedOutputIsReadAgain(t *testing.T) {
	h := &fakeHost{}
	s := h.on(t, Options{Store: "s"})
	job := flow.JobID("t", flow.Address{Node: "a", Visit: 1, Attempt: 1})
	at := "/containers/" + s.containerName(job)
	var whole atomic.Bool
	h.answer(map[string]http.HandlerFunc{
		"GET " + at + "/json": says(http.StatusOK, `{"State":{"Status":"exited"}}`),
		"GET " + at + "/logs": says(http.StatusOK, ""),
		"GET " + at + "/archive": func(w http.ResponseWriter, _ *http.Request) {
			var b bytes.Buffer
			to := tar.NewWriter(&b)
			_ = to.WriteHeader(&tar.Header{Name: "o", Typeflag: tar.TypeReg, Mode: 0o644, Size: 5})
			_, _ = to.Write([]byte("[1,2]"))
			_ = to.Close()
			w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString([]byte(`{"name":"o","size":5}`)))
			if !whole.Load() {
				b.Truncate(514)
			}
			_, _ = w.Write(b.Bytes())
		},
	})
	x := flow.External{Service: Name, ID: s.containerName(job), Job: job, Task: "t", Data: (&trackerNote{FromFile: "/o"}).encodeData()}
	status, err := s.Poll(t.Context(), x)
	require.ErrorIs(t, err, errBroken)
	require.False(t, status.Ended)
	whole.Store(true)
	status, err = s.Poll(t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, flow.ExternalStatus{Ended: true, Output: json.RawMessage("[1,2]"), Again: firstLook}, status)
}

// encodeOutput encodes standard output of a container in the format of a container host.
func encodeOutput(text string) string {
	return string(binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(text)))) + text
}

func TestAFollowedLogPastItsEndIsReadAgain(t *testing.T) {
	h := &fakeHost{}
	s := h.on(t, Options{Store: "s"})
	job := flow.JobID("t", flow.Address{Node: "a", Visit: 1, Attempt: 1})
	at := "/containers/" + s.containerName(job)
	var state atomic.Value
	state.Store("running")
	h.answer(map[string]http.HandlerFunc{
		"GET " + at + "/json": func(w http.ResponseWriter, r *http.Request) {
			says(http.StatusOK, `{"State":{"Status":"`+state.Load().(string)+`"}}`)(w, r)
		},
		"GET " + at + "/logs": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(encodeOutput("ORK_OUTPUT:[1,2]\n")))
			if r.URL.Query().Get("follow") == "1" {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done() // its end was missed
			}
		},
	})
	x := flow.External{Service: Name, ID: s.containerName(job), Job: job, Task: "t", Data: (&trackerNote{}).encodeData()}
	for _, is := range []string{"running", "exited"} {
		state.Store(is)
		status, err := s.Poll(t.Context(), x)
		require.NoError(t, err)
		require.False(t, status.Ended, "%s: not all is read", is)
	}
	status, err := s.Poll(t.Context(), x)
	require.NoError(t, err)
	require.True(t, status.Ended)
	require.JSONEq(t, "[1,2]", string(status.Output))
}

func TestDetailsAndMetricsOfContainersAreKept(t *testing.T) {
	h := &fakeHost{}
	s := h.on(t, Options{Store: "s"})
	job := flow.JobID("t", flow.Address{Node: "a", Visit: 1, Attempt: 1})
	at := "/containers/" + s.containerName(job)
	h.answer(map[string]http.HandlerFunc{
		"GET " + at + "/json": says(http.StatusOK, `{"State":{"Status":"exited","ExitCode":1}}`),
		"GET " + at + "/logs": says(http.StatusOK,
			encodeOutput("ORK_METRIC:{\"name\":\"rows\",\"value\":2}\nORK_ERROR:{\"message\":\"no "+
				"such customer\",\"details\":{\"id\":7}}\n")),
	})
	x := flow.External{Service: Name, ID: s.containerName(job), Job: job, Task: "t", Data: (&trackerNote{}).encodeData()}
	status, err := s.Poll(t.Context(), x)
	require.NoError(t, err)
	require.True(t, status.Ended)
	again, err := s.Poll(t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, status, again)
	require.Equal(t, "no such customer", status.Error)
	require.JSONEq(t, `{"id":7}`, string(status.Details))
	require.JSONEq(t, `[{"name":"rows","count":1,"sum":2,"last":2}]`, string(status.Metrics))
}
