package e2e

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	errands.BeWorker()
	os.Exit(build(m))
}

// build builds the tested command, then runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "troupe")
	if err := built.Program(binary, "../../../cmd/troupe"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The tested processes mostly wait. With more parallel tests, members would be killed before
	// they have made progress.
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err := errands.WithContainers(func() int { return pgtest.Main(m) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// plan is the size of a test.
type plan struct {
	kills int
	seed  uint64
	tasks []errands.Errand
	want  []errands.Outcome // of an undisturbed run of the same tasks
}

func newPlan(t *testing.T) *plan {
	p := &plan{kills: 3, seed: 1}
	if text := os.Getenv("TROUPE_CRASH_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, "TROUPE_CRASH_KILLS")
		p.kills, p.seed = n, rand.Uint64N(1_000_000)
	}
	if text := os.Getenv("TROUPE_CRASH_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "TROUPE_CRASH_SEED")
		p.seed = n
	}
	p.tasks = errands.Draw(p.seed, max(60, 10*p.kills))
	t.Logf("TROUPE_CRASH_KILLS=%d TROUPE_CRASH_SEED=%d: %d tasks", p.kills, p.seed, len(p.tasks))
	return p
}

// rng returns a random source for one test.
func (p *plan) rng(t *testing.T) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}

func millis(rng *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+rng.IntN(to-from)) * time.Millisecond
}

func TestCrash(t *testing.T) {
	p := newPlan(t)
	// it runs first, because the other tests would occupy the parallel slots and wait for it
	t.Run("undisturbed", func(t *testing.T) {
		s := newStage(t, "")
		s.open(t.Context())
		ended := s.storm(p.tasks, 1, func(int) {})
		p.want = ended.outcomes
		s.leave()
		f := errands.Audit(t, s.store, ended.byTask)
		require.Zero(t, f.Redeliveries)
		require.NotZero(t, f.Seen(t, s.diary()), "nobody has come to the limit of a key")
		require.Zero(t, s.world.Kept(t, f).Lost)
	})
	t.Run("a killed member on SQLite", func(t *testing.T) {
		t.Parallel()
		killMember(t, p, "SQLite", "")
	})
	t.Run("a killed member on Postgres", func(t *testing.T) {
		t.Parallel()
		killMember(t, p, "Postgres", pgtest.DSN(t))
	})
	t.Run("a killed member of three", func(t *testing.T) {
		t.Parallel()
		killOneOfThree(t, p)
	})
	t.Run("a rolling upgrade", func(t *testing.T) {
		t.Parallel()
		upgradeOneByOne(t, p)
	})
	t.Run("a killed Postgres", func(t *testing.T) {
		t.Parallel()
		killPostgres(t, p)
	})
	t.Run("a member that sleeps too long", func(t *testing.T) {
		t.Parallel()
		putToSleep(t, p)
	})
	t.Run("a member that leaves and comes back", func(t *testing.T) {
		t.Parallel()
		leaveAndComeBack(t, p)
	})
	t.Run("killed workers", func(t *testing.T) {
		t.Parallel()
		killWorkers(t, p)
	})
	t.Run("large values on SQLite", func(t *testing.T) {
		t.Parallel()
		killAmongValues(t, p, "")
	})
	t.Run("large values on Postgres", func(t *testing.T) {
		t.Parallel()
		killAmongValues(t, p, pgtest.DSN(t))
	})
	t.Run("a job in hand", func(t *testing.T) {
		t.Parallel()
		heldJobs(t)
	})
}

// ended is how the tasks of a storm ended.
type ended struct {
	outcomes []errands.Outcome // by errand
	byTask   map[string]errands.Outcome
}

// storm runs the errands in as many waves as there are disturbances, one after the start of each
// wave. It returns when every task has ended.
func (s *stage) storm(tasks []errands.Errand, waves int, disturb func(i int)) ended {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	e := ended{outcomes: make([]errands.Outcome, len(tasks)), byTask: map[string]errands.Outcome{}}
	var mu sync.Mutex
	var people sync.WaitGroup
	require.NoError(s.t, s.world.StartClocks(ctx, s.client))
	for wave := range waves {
		for i := wave * len(tasks) / waves; i < (wave+1)*len(tasks)/waves; i++ {
			people.Go(func() {
				task, end, err := tasks[i].Run(ctx, s.client)
				assert.NoError(s.t, err, "errand %d (%s), task %s", i, tasks[i].Flow, task)
				mu.Lock()
				defer mu.Unlock()
				e.outcomes[i], e.byTask[task] = end, end
			})
		}
		disturb(wave)
	}
	impatient := time.AfterFunc(patience, cancel)
	people.Wait()
	impatient.Stop()
	require.NoError(s.t, s.world.Settle(s.t.Context(), s.client, patience))
	return e
}

// finish compares a storm with the undisturbed run and audits the store.
func (s *stage) finish(p *plan, e ended) errands.Figures {
	s.t.Helper()
	s.leave()
	f := errands.Audit(s.t, s.store, e.byTask)
	full := f.Seen(s.t, s.diary())
	s.t.Logf("keys were full %d times; around the members: %+v", full, s.world.Kept(s.t, f))
	require.NotEmpty(s.t, p.want, "there was no undisturbed run")
	for i := range p.tasks {
		assert.Equal(s.t, p.want[i], e.outcomes[i], "errand %d: %s %v", i, p.tasks[i].Flow, p.tasks[i].Params)
	}
	return f
}

// tell prints the result of a run.
func (s *stage) tell(what string, n int, begun time.Time, f errands.Figures) {
	jobs, more := 0, 0
	for _, began := range s.executions() {
		jobs++
		more += len(began) - 1
	}
	s.t.Logf("%d %s, %d tasks, %d attempts, %d redeliveries, %d of %d workers' jobs begun again, %d requests sent again, %.1f s",
		n, what, f.Tasks, f.Attempts, f.Redeliveries, more, jobs, s.client.Again.Load(), time.Since(begun).Seconds())
}

// shortVisibility returns jobs soon whose worker is gone or does not know them. It is longer than
// the outage of a member by its lease.
const shortVisibility = 5 * time.Second

// killMember kills the member during its start, during its work, and after a run long enough for a
// task of slow jobs. Without the last kind a busy machine would finish nothing, because jobs lost
// too often fail.
func killMember(t *testing.T, p *plan, kind, store string) {
	begun, rng, s := time.Now(), p.rng(t), newStage(t, store)
	s.visibility = shortVisibility
	s.open(t.Context())
	samples := map[string]errands.Outcome{}
	e := s.storm(p.tasks, p.kills, func(i int) {
		switch i % 3 {
		case 0:
			s.ready()
			sample := errands.Sample(i)
			task, end, err := sample.Run(t.Context(), s.client)
			require.NoError(t, err)
			samples[task] = end
		case 1:
			s.ready()
			time.Sleep(millis(rng, 400, 1500))
		case 2:
			time.Sleep(millis(rng, 0, 150))
		}
		s.crash()
		s.launch()
	})
	maps.Copy(e.byTask, samples)
	s.tell("kills on "+kind, p.kills, begun, s.finish(p, e))
}

// killPostgres kills the server; the member has to continue by itself.
func killPostgres(t *testing.T, p *plan) {
	begun, rng := time.Now(), p.rng(t)
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	s := newStage(t, server.DSN("postgres"))
	s.client.Patient = true
	s.visibility = shortVisibility
	s.open(t.Context())
	e := s.storm(p.tasks, p.kills, func(int) {
		time.Sleep(millis(rng, 300, 1500))
		require.NoError(t, server.Kill())
		time.Sleep(millis(rng, 0, 3000))
		require.NoError(t, server.Restart(t.Context()))
		s.ready()
	})
	require.False(t, s.member.Gone())
	s.tell("kills of Postgres", p.kills, begun, s.finish(p, e))
}

// putToSleep freezes the member until another one has taken over the store. When it continues, it
// must write nothing and end.
func putToSleep(t *testing.T, p *plan) {
	begun, rng, s := time.Now(), p.rng(t), newStage(t, pgtest.DSN(t))
	s.visibility = shortVisibility
	// workers do not know the successor; jobs they do not return wait for this time
	s.grace = patience / 4
	s.open(t.Context())
	naps := (p.kills + 4) / 5
	e := s.storm(p.tasks, naps, func(nap int) {
		s.ready()
		time.Sleep(millis(rng, 300, 1200))
		require.NoError(t, s.member.Freeze())
		address := freeAddress(t)
		successor := s.serve("successor", address)
		s.readyAt(successor, address)
		s.said("successor", "member fenced", nap+1)
		time.Sleep(millis(rng, 0, 1000))
		require.NoError(t, s.member.Thaw())
		var exit *exec.ExitError
		require.ErrorAs(t, s.member.Wait(patience), &exit, "who lost the store fails")
		require.NoError(t, successor.Stop(patience))
		s.launch()
	})
	s.tell("naps", naps, begun, s.finish(p, e))
}

// leaveAndComeBack stops the member gracefully; nothing runs twice.
func leaveAndComeBack(t *testing.T, p *plan) {
	begun, rng, s := time.Now(), p.rng(t), newStage(t, "")
	s.grace = patience / 4 // workers return, even if the member starts slowly
	s.open(t.Context())
	e := s.storm(p.tasks, p.kills, func(int) {
		time.Sleep(millis(rng, 300, 1500))
		s.leave()
		s.launch()
		s.ready()
	})
	f := s.finish(p, e)
	for job, began := range s.executions() {
		assert.Len(t, began, 1, "workers that began job %s", job)
	}
	s.tell("stops", p.kills, begun, f)
}

// killWorkers kills one worker after the other. Each service always has another worker, and time to
// finish its additional jobs.
func killWorkers(t *testing.T, p *plan) {
	begun, rng, s := time.Now(), p.rng(t), newStage(t, "")
	s.visibility = shortVisibility
	s.grace = 300 * time.Millisecond
	s.open(t.Context())
	e := s.storm(p.tasks, p.kills, func(int) {
		time.Sleep(millis(rng, 1000, 1800))
		name := everybody[rng.IntN(6)] // the others belong to the command
		s.workers[name].Kill()
		time.Sleep(millis(rng, 0, 500))
		s.hire(name)
		s.reachable(name)
	})
	s.tell("kills of workers", p.kills, begun, s.finish(p, e))
}
