package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// yard is another system that names its jobs after ours.
type yard struct {
	mu      sync.Mutex
	by      map[string]string // the member that started each job
	looked  map[string]string // the member that polled each job last
	adopted int
	twice   []string // started again without the notice that they may exist
	open    bool     // all jobs have ended
	// jobs of the first member whose start gets no answer, and how many there may be at once
	held map[string]bool
	most int
}

// dock is the connection of one member to the yard.
type dock struct {
	*yard
	member string
}

func (d dock) Start(ctx context.Context, job flow.Job, lost bool) flow.Report {
	if d.begin(job.ID(), lost) {
		<-ctx.Done()
		return flow.Report{Error: "the member has gone"}
	}
	return flow.Report{Deferred: []External{{Service: "yard", ID: job.ID()}}}
}

// begin reports whether the answer is held back.
func (d dock) begin(id string, lost bool) (held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch by := d.by[id]; {
	case by == "":
		d.by[id] = d.member
		if d.member == "first" && len(d.held) < d.most {
			d.held[id] = true
		}
		return d.held[id]
	case lost:
		d.adopted++
		delete(d.held, id)
	default:
		d.twice = append(d.twice, id)
	}
	return false
}

func (d dock) Poll(_ context.Context, x External) (ExternalStatus, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[x.ID] == "" {
		return ExternalStatus{}, errors.New("there is no such work")
	}
	d.looked[x.ID] = d.member
	return ExternalStatus{Ended: d.open, Output: json.RawMessage(`1`), Again: 50 * time.Millisecond}, nil
}

func (d dock) Cancel(context.Context, External) error { return nil }

// countPolled returns how many jobs are polled by one of the members.
func (y *yard) countPolled(members ...string) (polled int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, by := range y.looked {
		if slices.Contains(members, by) {
			polled++
		}
	}
	return polled
}

// countStarts returns how many jobs were started, how many of these starts get no answer, and how
// many were repeated with the notice that the job may exist.
func (y *yard) countStarts() (begun, held, adopted int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.by), len(y.held), y.adopted
}

func (y *yard) opens() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.open = true
}

func TestOtherMembersFollowExternalJobsOfAKilledMember(t *testing.T) {
	const many, held = 60, 3
	y := &yard{by: map[string]string{}, looked: map[string]string{}, held: map[string]bool{}, most: held}
	store := pgtest.DSN(t)
	member := func(name string) *Engine {
		d := dock{y, name}
		return join(t, Config{Store: store, Name: name, Lease: 6 * time.Second,
			Starters: map[string]Starter{"yard": d}, Trackers: map[string]Tracker{"yard": d}})
	}
	first, second := member("first"), member("second")
	sharedEvenly(t, first, second) // a held job would move, too
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	require.NoError(t, second.Publish(ctx, "f", []byte("nodes: {work: {exec_type: external, service: yard}}")))
	var ids []string
	begin := func() {
		id, err := second.Start(ctx, "f", nil)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	for range many {
		begin()
	}
	// If the first member loses its lease for a while, the second one adopts held jobs already now.
	var before int // number of jobs that were adopted before
	for {
		require.NoError(t, ctx.Err())
		begun, holding, adopted := y.countStarts()
		if begun == len(ids) && holding == held && y.countPolled("first", "second") == begun-held {
			before = adopted
			break
		}
		if begun == len(ids) && holding < held {
			begin()
		}
		time.Sleep(10 * time.Millisecond)
	}

	first.end() // so that it does not start a new life
	first.member.Kill()
	require.Eventually(t, func() bool { return y.countPolled("second") == len(ids) }, time.Minute, 10*time.Millisecond,
		"it looks after what the first one has begun")
	y.opens()
	for _, id := range ids {
		result, err := waitFor(ctx, second, id)
		require.NoError(t, err)
		require.JSONEq(t, `{"work": 1}`, string(result.Value), result.Error)
	}
	_, _, adopted := y.countStarts()
	require.Equal(t, held, adopted-before, "what had begun and was not stored")
	require.Empty(t, y.twice)
	require.Len(t, y.by, len(ids))
}
