package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// stage is a store, a member on it and its workers, in processes of their own.
type stage struct {
	t       *testing.T
	dir     string // folder of the logs and, on SQLite, of the store
	store   string // store setting
	program string // path of the members' program
	address string
	base    string // URL of the member
	member  *process.Process
	workers map[string]*process.Process
	urls    map[string]string // URLs of push workers; a restarted one keeps its URL
	client  *errands.Client
	world   *errands.World

	workerTTL  time.Duration // maximal silence of workers
	visibility time.Duration // maximal silence of pollers about a job
	grace      time.Duration // grace period of attached workers
	settings   []string      // further flags of members
}

// binary is the built command.
var binary string

// newStage prepares a stage without processes. The store "" is an SQLite file.
func newStage(t *testing.T, store string) *stage {
	dir, err := os.MkdirTemp("", "troupe-e2e-")
	require.NoError(t, err)
	s := &stage{t: t, dir: dir, store: store, program: binary, address: freeAddress(t),
		workers: map[string]*process.Process{}, urls: map[string]string{},
		workerTTL: 15 * time.Second, visibility: time.Minute, grace: 5 * time.Second}
	if store == "" {
		s.store = "sqlite:" + filepath.Join(dir, "troupe.db")
	}
	s.base = "http://" + s.address
	s.client = errands.NewClient(s.base)
	t.Cleanup(s.clear)
	s.world = errands.NewWorld(t, dir, "127.0.0.1")
	return s
}

// clear keeps the logs if the test failed. By now all processes have ended.
func (s *stage) clear() {
	s.client.HTTP.CloseIdleConnections()
	if s.t.Failed() || os.Getenv("KEEP") != "" {
		s.keep()
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
}

// logs is the folder for the output of long tests.
const logs = "../../../logs"

func (s *stage) keep() {
	to := filepath.Join(logs, "crash", strings.ReplaceAll(s.t.Name(), "/", "-"))
	err := os.RemoveAll(to)
	if err == nil {
		err = os.CopyFS(to, os.DirFS(s.dir))
	}
	if err != nil {
		s.t.Errorf("what was said could not be kept: %v", err)
		return
	}
	s.t.Logf("what member and workers said is in %s", to)
}

// launch starts the member without waiting for it.
func (s *stage) launch() { s.member = s.serve("member", s.address) }

// serve starts a member at an address.
func (s *stage) serve(name, address string) *process.Process {
	cmd := exec.Command(s.program, "serve", "--store", s.store, "--listen", address, "--name", name, "--poll-network", "127.0.0.0/8",
		"--idle-after", "400ms", "--worker-save-interval", "500ms",
		"--worker-ttl", s.workerTTL.String(), "--job-lease", s.visibility.String(), "--resume-grace", s.grace.String())
	cmd.Args = append(cmd.Args, s.settings...)
	watch := s.world.Prepare(cmd, name)
	p, err := process.Start(s.dir, name, cmd)
	require.NoError(s.t, err)
	s.t.Cleanup(p.Kill)
	watch(p.Done())
	return p
}

// freeAddress returns an unused address.
func freeAddress(t *testing.T) string {
	address, err := ports.FreeAddress()
	require.NoError(t, err)
	return address
}

// patience is the time limit for everything that should happen by itself.
const patience = 60 * time.Second

// ready waits until the member accepts work.
func (s *stage) ready() { s.readyAt(s.member, s.address) }

func (s *stage) readyAt(p *process.Process, address string) {
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := s.client.HTTP.Get("http://" + address + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if p.Gone() || time.Since(begun) > patience {
			s.t.Fatalf("%s is not ready: ended %v. It said:\n%s", p.Name, p.Gone(), p.Said())
		}
	}
}

// everybody lists the workers: those of our services by push, pull and attached, and those of the
// command.
var everybody = []string{"push-1", "push-2", "pull-1", "pull-2", "attached-1", "attached-2", "demo-push", "demo-pull"}

// open starts the member and all workers.
func (s *stage) open(ctx context.Context) {
	s.openAlone(ctx)
	for _, name := range everybody {
		s.hire(name)
	}
	s.await(everybody...)
}

// openAlone starts the member and publishes the flows.
func (s *stage) openAlone(ctx context.Context) {
	s.launch()
	s.ready()
	require.NoError(s.t, errands.PublishAll(ctx, s.client))
}

// hire starts one of the workers.
func (s *stage) hire(name string) {
	kind, _, _ := strings.Cut(name, "-")
	switch kind {
	case "push":
		s.hireFor(name, errands.Worker{Push: true, Services: errands.PushServices})
	case "pull":
		s.hireFor(name, errands.Worker{Services: errands.PullServices})
	case "attached":
		s.hireFor(name, errands.Worker{Attach: true, Services: errands.AttachedServices})
	default:
		s.employ(name, exec.Command(binary, "worker", "--server", s.base, "--id", name,
			"--mode", strings.TrimPrefix(name, "demo-"), "--url", s.url(name), "--delay", "20ms"))
	}
}

// hireFor starts a worker for some of our services.
func (s *stage) hireFor(name string, spec errands.Worker) {
	spec.ID, spec.Server, spec.URL, spec.Diary, spec.Outside = name, s.base, s.url(name), s.diary(), s.world.Outside.Address
	cmd, err := spec.Command()
	require.NoError(s.t, err)
	s.employ(name, cmd)
}

func (s *stage) employ(name string, cmd *exec.Cmd) {
	cmd.Dir = s.dir
	p, err := process.Start(s.dir, name, cmd)
	require.NoError(s.t, err)
	s.t.Cleanup(p.Kill)
	s.workers[name] = p
}

func (s *stage) url(name string) string {
	if s.urls[name] == "" {
		s.urls[name] = "http://" + freeAddress(s.t)
	}
	return s.urls[name]
}

// diary is the file in which workers record the start and end of jobs.
func (s *stage) diary() string { return filepath.Join(s.dir, "diary") }

// executions returns the workers that began each job, in order.
func (s *stage) executions() map[string][]string {
	began, err := errands.ReadDiary(s.diary())
	require.NoError(s.t, err)
	return began
}

// await waits until workers are registered.
func (s *stage) await(names ...string) {
	var known []struct{ ID string }
	require.Eventually(s.t, func() bool {
		known = nil
		_, answer, err := s.client.Send(s.t.Context(), errands.Request{Method: "GET", Path: "/workers/list"})
		if err != nil || json.Unmarshal(answer, &known) != nil {
			return false
		}
		found := map[string]bool{}
		for _, w := range known {
			found[w.ID] = true
		}
		for _, name := range names {
			if !found[name] {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond, "workers %v are not registered: %v", names, known)
}

// reachable waits until a push worker accepts calls.
func (s *stage) reachable(name string) {
	if !strings.HasPrefix(name, "push") {
		return
	}
	require.Eventually(s.t, func() bool {
		resp, err := s.client.HTTP.Get(s.urls[name])
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond, "worker %s does not answer", name)
}

// said waits until a log contains a text for the nth time.
func (s *stage) said(name, what string, n int) {
	require.Eventually(s.t, func() bool {
		text, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
		return err == nil && strings.Count(string(text), what) >= n
	}, patience, 10*time.Millisecond, "%s has not said %q", name, what)
}

// crash kills the member.
func (s *stage) crash() { s.member.Kill() }

// leave stops the member gracefully.
func (s *stage) leave() { require.NoError(s.t, s.member.Stop(patience)) }
