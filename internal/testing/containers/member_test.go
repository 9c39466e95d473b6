//go:build containers && linux

package containers

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// patience is the time limit of waits on a busy machine.
const patience = 2 * time.Minute

// stage is the environment of members.
type stage struct {
	*testing.T
	store   string
	scripts string // folder of the mounts
	folder  string
	host    string
}

func newStage(t *testing.T, store string) *stage {
	dir := t.TempDir()
	s := &stage{T: t, store: store, scripts: filepath.Join(dir, "scripts"), folder: dir, host: podman.URL}
	if store == "" {
		s.store = "sqlite:" + filepath.Join(dir, "troupe.db")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(s.scripts, "data"), 0o755))
	return s
}

// member is a running member.
type member struct {
	*stage
	*process.Process
	*client.Client
	url string
}

// member starts a member that is killed at the end of the test.
func (s *stage) member(name string, more ...string) *member {
	s.Helper()
	address, err := ports.FreeAddress()
	require.NoError(s, err)
	args := append([]string{"serve", "--store", s.store, "--name", name, "--listen", address,
		"--container-host", s.host, "--script-dir", s.scripts}, more...)
	if !strings.HasPrefix(s.store, "sqlite:") {
		gossip, err := ports.FreeAddress()
		require.NoError(s, err)
		args = append(args, "--gossip", gossip)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = s.folder
	p, err := process.Start(s.folder, name, cmd)
	require.NoError(s, err)
	s.Cleanup(p.Kill)
	c, err := client.New("http://"+address, client.Options{})
	require.NoError(s, err)
	s.Cleanup(c.Close)
	require.Eventually(s, func() bool { return p.Gone() || c.Ready(s.Context()) == nil }, patience, 20*time.Millisecond)
	require.False(s, p.Gone(), "%s", p.Said())
	return &member{s, p, c, "http://" + address}
}

// allowed starts a member that may run containers.
func (s *stage) allowed(name string) *member {
	return s.member(name, "--allow-containers", "--object-store", "file://"+filepath.Join(s.folder, "objects"))
}

// everywhere runs a check with a single member on its own store, and with three members on one
// store that get requests alternately.
func everywhere(t *testing.T, check func(*testing.T, *member)) {
	t.Run("sqlite", func(t *testing.T) { check(t, newStage(t, "").allowed("one")) })
	t.Run("cluster", func(t *testing.T) {
		s := newStage(t, pgtest.DSN(t))
		m, turns := s.allowed("one"), &turns{}
		for _, one := range []*member{m, s.allowed("two"), s.allowed("three")} {
			turns.hosts = append(turns.hosts, strings.TrimPrefix(one.url, "http://"))
		}
		c, err := client.New(m.url, client.Options{HTTPClient: &http.Client{Transport: turns}})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		m.Client = c
		check(t, m)
	})
}

// turns sends each request to the next member.
type turns struct {
	hosts []string
	next  atomic.Uint64
}

func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.hosts[t.next.Add(1)%uint64(len(t.hosts))]
	r.Host = r.URL.Host
	return http.DefaultTransport.RoundTrip(r)
}

// begin starts a task of a flow with the given nodes.
func (m *member) begin(nodes string, params any) string {
	m.Helper()
	_, err := m.Publish(m.Context(), "f", []byte("profile: ork\nnodes:\n"+nodes))
	require.NoError(m, err)
	raw, err := json.Marshal(params)
	require.NoError(m, err)
	started, err := m.Start(m.Context(), wire.StartRequest{Flow: "f", Params: raw})
	require.NoError(m, err)
	return started.ID
}

// end waits for a task's end.
func (m *member) end(task, state string) *wire.Task {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), patience)
	defer cancel()
	ended, err := m.Client.Wait(ctx, task)
	if err != nil {
		stuck, _ := m.Task(m.Context(), task)
		told, _ := json.Marshal(stuck)
		m.Logf("the task: %s\nits containers: %+v", told, ours(m.T, task))
	}
	require.NoError(m, err, "%s", m.Said())
	require.Equal(m, state, ended.State, "%s", ended.Error)
	return ended
}

// runs starts a task and checks its final state.
func (m *member) runs(nodes string, params any, state string) *wire.Task {
	m.Helper()
	return m.end(m.begin(nodes, params), state)
}

// attempts returns the attempts of a task's node, in order.
func (m *member) attempts(task, node string) (all []wire.Run) {
	m.Helper()
	page, err := m.Runs(m.Context(), task, client.Paging{Limit: 500})
	require.NoError(m, err)
	for _, r := range page.Items {
		if r.Node == node && r.Kind == "attempt" {
			all = append(all, r)
		}
	}
	return all
}

// printed checks the log of an attempt. It waits, because the last lines may be stored late.
func (m *member) printed(r wire.Run, want, why string) {
	m.Helper()
	var text string
	assert.Eventually(m, func() bool {
		var err error
		text, err = m.Log(m.Context(), r.Job)
		return err == nil && len(text) >= len(want)
	}, patience, 20*time.Millisecond)
	require.Equal(m, want, text, why)
}

// nothingLeft waits until no container of a task exists.
func (m *member) nothingLeft(task string) {
	m.Helper()
	require.Eventually(m, func() bool { return len(ours(m.T, task)) == 0 }, patience, 100*time.Millisecond, "containers are left over")
}
