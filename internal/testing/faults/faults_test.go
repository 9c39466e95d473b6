package faults

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
)

// plan is the size of a test.
type plan struct {
	seed  uint64
	tasks []errands.Errand
}

// Size of the short form: faults, and tasks running meanwhile.
const (
	fewFaults, fewTasks           = 7, 250
	fewFaultsOfOne, fewTasksOfOne = 2, 100
	tasksOfAFault                 = 20 // minimum
)

// newPlan reads the size of the test. The seed of the short form is fixed, because every change has
// to pass it.
func newPlan(t *testing.T) (p *plan, faults, faultsOfOne int) {
	p, faults, faultsOfOne = &plan{seed: 1}, fewFaults, fewFaultsOfOne
	if n, given := number(t, "TROUPE_FAULTS"); given {
		faults, faultsOfOne, p.seed = int(n), int(n), rand.Uint64N(1_000_000)
	}
	if n, given := number(t, "TROUPE_FAULTS_SEED"); given {
		p.seed = n
	}
	p.tasks = errands.Draw(p.seed, max(fewTasks, tasksOfAFault*faults))
	t.Logf("TROUPE_FAULTS=%d TROUPE_FAULTS_SEED=%d: %d tasks", faults, p.seed, len(p.tasks))
	return p, faults, faultsOfOne
}

func number(t *testing.T, variable string) (n uint64, given bool) {
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return n, true
}

// theMembers is the number of members of a small production cluster.
const theMembers = 3

// TestMembersOutlastFaults runs tasks without faults, and with faults of several members and of
// one. The results have to be equal.
func TestMembersOutlastFaults(t *testing.T) {
	p, faults, faultsOfOne := newPlan(t)
	var want ended
	t.Run("undisturbed", func(t *testing.T) { want = p.undisturbed(t) })
	require.False(t, t.Failed())
	t.Run("several members", func(t *testing.T) { p.outlast(t, theMembers, faults, len(p.tasks), want) })
	t.Run("one member", func(t *testing.T) { p.outlast(t, 1, faultsOfOne, max(fewTasksOfOne, tasksOfAFault*faultsOfOne), want) })
}

func (p *plan) undisturbed(t *testing.T) ended {
	c := newTestCluster(t, 1)
	c.visibility = time.Minute // no worker times out on a slow machine
	c.open(t.Context())
	want := c.storm(p.tasks, nil)
	f := c.finish(want)
	require.Zero(t, f.Redeliveries)
	require.NotZero(t, f.Seen(t, c.path("diary")), "nobody has come to the limit of a key")
	require.Zero(t, c.world.Kept(t, f).Lost)
	return want
}

// outlast runs some of the tasks during faults.
func (p *plan) outlast(t *testing.T, members, count, tasks int, want ended) {
	begun, c := time.Now(), newTestCluster(t, members)
	c.open(t.Context())
	faults := drawFaults(rand.New(rand.NewPCG(p.seed, uint64(members))), count, members)
	c.log.write("seed %d, %d faults, %d tasks, %d members", p.seed, count, tasks, members)
	got := c.storm(p.tasks[:tasks], faults)
	f := c.finish(got)
	f.Seen(t, c.path("diary"))
	found := c.world.Kept(t, f)
	for i := range got.outcomes {
		assert.Equal(t, want.outcomes[i], got.outcomes[i], "errand %d: %s %v", i, p.tasks[i].Flow, p.tasks[i].Params)
	}
	c.tell(p.seed, count, begun, f, found)
}

// ended is how the tasks of a storm ended.
type ended struct {
	outcomes []errands.Outcome // by errand
	byTask   map[string]errands.Outcome
}

// storm runs the errands in as many waves as there are faults; each fault follows the start of its
// wave. It returns when every task has ended.
func (c *testCluster) storm(tasks []errands.Errand, faults []fault) ended {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	e := ended{outcomes: make([]errands.Outcome, len(tasks)), byTask: map[string]errands.Outcome{}}
	var mu sync.Mutex
	var people sync.WaitGroup
	waves := max(1, len(faults))
	require.NoError(c.t, c.world.StartClocks(ctx, c.client))
	for wave := range waves {
		for i := wave * len(tasks) / waves; i < (wave+1)*len(tasks)/waves; i++ {
			people.Go(func() {
				task, end, err := tasks[i].Run(ctx, c.client)
				if !assert.NoError(c.t, err, "errand %d (%s), task %s", i, tasks[i].Flow, task) {
					c.log.write("errand %d, task %s: %v", i, task, err)
				}
				mu.Lock()
				defer mu.Unlock()
				e.outcomes[i], e.byTask[task] = end, end
			})
		}
		if wave < len(faults) && !assert.NoError(c.t, c.suffer(ctx, faults[wave])) {
			cancel()
			break
		}
	}
	impatient := time.AfterFunc(patience, cancel)
	people.Wait()
	impatient.Stop()
	assert.NoError(c.t, c.world.Settle(c.t.Context(), c.client, patience))
	return e
}

// finish stops the cluster and audits the store.
func (c *testCluster) finish(e ended) errands.Figures {
	require.False(c.t, c.t.Failed())
	c.leave()
	return errands.Audit(c.t, c.server.DSN(database), e.byTask)
}

// tell prints the result of a run. It checks that tasks of both modes and jobs of each kind of
// worker occurred.
func (c *testCluster) tell(seed uint64, faults int, begun time.Time, f errands.Figures, found errands.Findings) {
	jobs, more := map[string]int{}, 0
	diary, err := errands.ReadDiary(c.path("diary"))
	require.NoError(c.t, err)
	for _, began := range diary {
		kind, _, _ := strings.Cut(began[0], "-")
		jobs[kind]++
		more += len(began) - 1
	}
	require.NotZero(c.t, f.Dags)
	require.NotEqual(c.t, f.Tasks, f.Dags)
	require.Len(c.t, jobs, 3, "push, pull, attached")
	c.figure(map[string]any{"figure": "faults in a row: every task ended as in an undisturbed " +
		"run, no attempt was applied twice", "seed": seed, "faults": faults,
		"tasks": f.Tasks, "of_these_dags": f.Dags, "attempts": f.Attempts,
		"redeliveries": f.Redeliveries, "jobs_of_workers": jobs, "begun_again": more,
		"programs_lost": found.Lost, "orphans_gone_after_ms": found.Orphans.Milliseconds(),
		"jobs_outside": found.Outside, "adopted": found.Adopted, "slots": found.Slots,
		"containers":          found.Boxes,
		"requests_sent_again": c.client.Again.Load(), "seconds": int(time.Since(begun).Seconds())})
}
