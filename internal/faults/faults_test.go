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

	"github.com/troupe-engine/troupe/internal/errands"
)

// plan is how much happens.
type plan struct {
	seed   uint64
	faults int
	tasks  []errands.Errand
}

// newPlan reads how much is to happen; the seed is fixed in the short form, which every change has to pass.
func newPlan(t *testing.T, few, tasks int) *plan {
	p := &plan{seed: 1, faults: few}
	if n, given := number(t, "TROUPE_FAULTS"); given {
		p.faults, p.seed = int(n), rand.Uint64N(1_000_000)
	}
	if n, given := number(t, "TROUPE_FAULTS_SEED"); given {
		p.seed = n
	}
	p.tasks = errands.Draw(p.seed, max(tasks, 20*p.faults))
	t.Logf("TROUPE_FAULTS=%d TROUPE_FAULTS_SEED=%d: %d tasks", p.faults, p.seed, len(p.tasks))
	return p
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

// theMembers are as many as a production deployment begins with.
const theMembers = 3

// fewFaults are those that every change has to pass.
const fewFaults = 6

func TestMembersOutlastFaults(t *testing.T) {
	p := newPlan(t, fewFaults, 250)
	p.outlast(t, theMembers)
}

func TestOneMemberOutlastsFaults(t *testing.T) {
	p := newPlan(t, 2, 100)
	p.outlast(t, 1)
}

// outlast has tasks done while faults happen, and once without any: they end alike.
func (p *plan) outlast(t *testing.T, members int) {
	var want, got ended
	t.Run("undisturbed", func(t *testing.T) {
		c := newCompany(t, 1)
		c.visibility = time.Minute // nobody dies, however slow the machine is
		c.open(t.Context())
		want = c.storm(p.tasks, nil)
		f := c.finish(want)
		require.Zero(t, f.Redeliveries)
		require.NotZero(t, f.Seen(t, c.path("diary")), "nobody has come to the limit of a key")
		require.Zero(t, c.world.Kept(t, f).Lost)
	})
	require.False(t, t.Failed())
	t.Run("faults", func(t *testing.T) {
		begun, c := time.Now(), newCompany(t, members)
		c.open(t.Context())
		faults := drawFaults(rand.New(rand.NewPCG(p.seed, uint64(members))), p.faults, members)
		c.log.write("seed %d, %d faults, %d tasks, %d members", p.seed, len(faults), len(p.tasks), members)
		got = c.storm(p.tasks, faults)
		f := c.finish(got)
		f.Seen(t, c.path("diary"))
		found := c.world.Kept(t, f)
		for i := range p.tasks {
			assert.Equal(t, want.outcomes[i], got.outcomes[i], "errand %d: %s %v", i, p.tasks[i].Flow, p.tasks[i].Params)
		}
		c.tell(p.seed, len(faults), begun, f, found)
	})
}

// ended is how all tasks of a storm ended.
type ended struct {
	outcomes []errands.Outcome // by errand
	byTask   map[string]errands.Outcome
}

// storm has people do their errands, in as many waves as there are faults, each of which happens after its wave has begun. It
// returns when every task has ended.
func (c *company) storm(tasks []errands.Errand, faults []fault) ended {
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

// finish closes the company and looks into the store.
func (c *company) finish(e ended) errands.Figures {
	require.False(c.t, c.t.Failed())
	c.leave()
	return errands.Audit(c.t, c.server.DSN(database), e.byTask)
}

// tell is a run's result in figures. Everything was there: tasks of both modes, and jobs of each kind of workers.
func (c *company) tell(seed uint64, faults int, begun time.Time, f errands.Figures, found errands.Findings) {
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
	c.figure(map[string]any{"figure": "faults in a row: every task ended as in an undisturbed run, no attempt was applied twice", "seed": seed, "faults": faults,
		"tasks": f.Tasks, "of_these_dags": f.Dags, "attempts": f.Attempts, "redeliveries": f.Redeliveries, "jobs_of_workers": jobs, "begun_again": more,
		"programs_lost": found.Lost, "orphans_gone_after_ms": found.Orphans.Milliseconds(), "jobs_outside": found.Outside, "adopted": found.Adopted, "slots": found.Slots, "containers": found.Boxes,
		"requests_sent_again": c.client.Again.Load(), "seconds": int(time.Since(begun).Seconds())})
}
