package attack

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// binary is the built command.
var binary string

// patience is the time limit for everything that should happen by itself, on any machine.
const patience = time.Minute

// member is the attacked member, in its own process.
type member struct {
	t       *testing.T
	dir     string // of its log and, on SQLite, of its store
	store   string
	address string
	process *process.Process
	weight  *weight
	*client
}

// newMember prepares a member without starting it. The store "" is an SQLite file.
func newMember(t *testing.T, store, token string) *member {
	dir, err := os.MkdirTemp("", "troupe-attack-")
	require.NoError(t, err)
	address, err := ports.FreeAddress()
	require.NoError(t, err)
	m := &member{t: t, dir: dir, store: store, address: address, client: newClient("http://"+address, token)}
	if store == "" {
		m.store = "sqlite:" + filepath.Join(dir, "troupe.db")
	}
	t.Cleanup(m.clear)
	return m
}

// clear keeps the logs if the test failed.
func (m *member) clear() {
	m.kill()
	if m.t.Failed() {
		to := filepath.Join(logs, strings.NewReplacer("/", "-", " ", "-").Replace(m.t.Name())+"-"+filepath.Base(m.dir)+".log")
		text, err := os.ReadFile(m.log())
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		m.t.Logf("what the member said is in %s (%v)", to, err)
	}
	assert.NoError(m.t, os.RemoveAll(m.dir))
}

// logs is the folder for the output of tests.
const logs = "../../../logs"

func (m *member) log() string { return filepath.Join(m.dir, "member.log") }

// open starts the member and waits until it accepts work.
func (m *member) open() error {
	cmd := exec.Command(binary, "serve", "--store", m.store, "--listen", m.address, "--name", "attacked", "--worker-ttl", "60s")
	if m.token != "" {
		cmd.Env = append(os.Environ(), "TROUPE_TOKEN="+m.token)
	}
	var err error
	if m.process, err = process.Start(m.dir, "member", cmd); err != nil {
		return err
	}
	m.weight = weigh(m.process)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := m.http.Get(m.base + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if m.process.Gone() || time.Since(began) > patience {
			return fmt.Errorf("the member is not ready after %v: ended %v, %w", time.Since(began), m.process.Gone(), m.process.Err)
		}
	}
}

// kill kills the process without warning.
func (m *member) kill() {
	if m.process != nil {
		m.process.Kill()
		m.weight.end()
	}
	m.http.CloseIdleConnections()
}

// leave stops the member gracefully.
func (m *member) leave() error { return m.process.Stop(patience) }

// cries returns the log lines that must never occur.
func (m *member) cries(t *testing.T) (lines []string) {
	text, err := os.ReadFile(m.log())
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "panic") || strings.Contains(line, "goroutine ") || strings.Contains(line, "crash") {
			lines = append(lines, fmt.Sprintf("%.300s", strings.TrimSpace(line)))
		}
	}
	return lines[:min(len(lines), 20)]
}

// within returns a context that also ends with the member.
func (m *member) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	gone := m.process.Done()
	go func() { // ends with ctx
		select {
		case <-gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
