package faults

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// member is a member on a host of its own. If it exits by itself, it is restarted, as by a service
// manager.
type member struct {
	*testCluster
	i    int
	name string

	mu      sync.Mutex
	process *process.Process
	down    bool // it was stopped by the test
}

func (m *member) site() site { return m.hosts.site(m.i) }

// start starts the member without waiting for it.
func (m *member) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = false
	return m.launch()
}

func (m *member) launch() error {
	cmd := exec.Command(binary, append([]string{"serve"}, m.flags()...)...)
	watch := m.world.Prepare(cmd, m.name)
	p, err := m.hosts.start(m.i, m.dir, m.name, cmd)
	if err != nil {
		return err
	}
	watch(p.Done())
	m.process = p
	go m.watch(p)
	return nil
}

// flags returns the flags, with short times so that tests are fast.
func (m *member) flags() []string {
	site := m.site()
	flags := []string{"--store", fmt.Sprintf(
		"postgres://postgres@%s/%s?sslmode=disable&application_name=%s", site.store, database,
		m.name), "--listen", site.listen(),
		"--name", m.name, "--idle-after", "400ms", "--worker-save-interval", "500ms", "--job-lease", m.visibility.String()}
	flags = append(flags, "--cluster", "faults", "--gossip", site.gossips(), "--advertise", site.url(),
		"--gossip-key-file", m.path("gossip.key"), "--cluster-secret-file", m.path("secret"))
	if m.i > 0 { // the first one finds the others in the store
		flags = append(flags, "--join", m.hosts.site(0).seed())
	}
	if site.loopback {
		return append(flags, "--poll-network", "127.0.0.0/8")
	}
	return append(flags, "--insecure", "--allow-host", "*", "--worker-network", "10.213.0.0/16", "--poll-network", "10.213.0.0/16")
}

// watch restarts the member when it has exited, unless the test stopped it.
func (m *member) watch(p *process.Process) {
	<-p.Done()
	time.Sleep(200 * time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != p || m.down {
		return
	}
	m.log.write("%s has ended by itself (%v) and is started again", m.name, p.Err)
	if err := m.launch(); err != nil {
		m.log.write("%s cannot be started: %v", m.name, err)
	}
}

// take returns the process and prevents its restart.
func (m *member) take() *process.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = true
	return m.process
}

// resume ends what take began: the process is started again if it has ended.
func (m *member) resume() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = false
	select {
	case <-m.process.Done():
		return m.launch()
	default:
		return nil
	}
}

func (m *member) running() *process.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

func (m *member) kill() { m.take().Kill() }

// stop stops the member gracefully.
func (m *member) stop() error { return m.take().Stop(patience) }

// end kills the member at the end of the test.
func (m *member) end() { m.kill() }

// ready returns an error unless the member accepts work.
func (m *member) ready() error {
	resp, err := probing.Get(m.site().base() + "/readyz")
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s", m.name, strings.ToLower(resp.Status))
	}
	return nil
}
