package troupe

import (
	"context"
	"encoding/json"
	"errors"
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
	holds   int      // number of further calls of the first member that get no answer
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
		held = d.member == "first" && d.holds > 0
	case lost:
		d.adopted++
	default:
		d.twice = append(d.twice, id)
	}
	if held {
		d.holds--
	}
	return held
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

// counts returns how many jobs were started, and how many a member polls.
func (y *yard) counts(member string) (begun, looked int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, by := range y.looked {
		if by == member {
			looked++
		}
	}
	return len(y.by), looked
}

func (y *yard) opens() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.open = true
}

func TestOtherMembersFollowExternalJobsOfAKilledMember(t *testing.T) {
	const many, held = 60, 3
	y := &yard{by: map[string]string{}, looked: map[string]string{}, holds: held}
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
	ids := make([]string, many)
	for i := range ids {
		id, err := second.Start(ctx, "f", nil)
		require.NoError(t, err)
		ids[i] = id
	}
	require.Eventually(t, func() bool {
		begun, ofFirst := y.counts("first")
		_, ofSecond := y.counts("second")
		return begun == many && ofFirst+ofSecond == many-held
	}, time.Minute, 10*time.Millisecond)

	first.end() // so that it does not start a new life
	first.member.Kill()
	require.Eventually(t, func() bool {
		_, ofSecond := y.counts("second")
		return ofSecond == many
	}, time.Minute, 10*time.Millisecond, "it looks after what the first one has begun")
	y.opens()
	for _, id := range ids {
		result, err := waitFor(ctx, second, id)
		require.NoError(t, err)
		require.JSONEq(t, `{"work": 1}`, string(result.Value), result.Error)
	}
	require.Equal(t, held, y.adopted, "what had begun and was not stored")
	require.Empty(t, y.twice)
	require.Len(t, y.by, many)
}
