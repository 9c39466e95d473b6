package actors_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

// rests records the Rest of each task's commits; nil for a commit without one.
type rests struct {
	mu sync.Mutex
	of map[string][]*persistence.Rest
}

func (r *rests) said(task string) []*persistence.Rest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.of[task])
}

// startNotingRests starts a member whose tasks leave memory soon.
func startNotingRests(t *testing.T) (*harness, *rests) {
	r := &rests{of: map[string][]*persistence.Rest{}}
	th := start(t, actors.Config{IdleAfter: 30 * time.Millisecond, Store: faulty.Wrap(newLeaping(),
		faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, c := range batch {
				r.of[c.Task] = append(r.of[c.Task], c.Rest)
			}
			return faulty.Fault{}
		}})})
	return th, r
}

var (
	atRest    = &persistence.Rest{Resting: true}
	notAtRest = &persistence.Rest{}
)

func TestARowThatOnlyLeavesWaitingPutsItsTaskToRest(t *testing.T) {
	th, r := startNotingRests(t)
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	th.eventuallyEmpty(t)
	require.Equal(t, []*persistence.Rest{atRest}, r.said(id), "it has left memory without another commit")

	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "else", Value: json.RawMessage(`1`)}, ""))
	th.eventuallyEmpty(t)
	require.Equal(t, []*persistence.Rest{atRest, atRest}, r.said(id), "it is loaded, waits on and leaves")

	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "ok", Value: json.RawMessage(`true`)}, ""))
	require.JSONEq(t, `{"else":1,"ok":true,"answer":true}`, string(th.ended(t, id).State.Root.SharedJSON()))
	require.Equal(t, []*persistence.Rest{atRest, atRest, notAtRest}, r.said(id))
}

func TestTheRowThatStartsATimerPutsItsTaskToRest(t *testing.T) {
	th, r := startNotingRests(t)
	id := th.begin(t, th.publish(t,
		`{"start":"t","nodes":{"t":{"kind":"timer","params":{"delay_ms":"$params.delay_ms"}}}}`),
		`{"delay_ms":3600000}`)
	view, err := th.reader.View(t.Context(), id)
	require.NoError(t, err)
	due, _ := flow.Idle(view.State)
	require.GreaterOrEqual(t, due, view.State.CreatedAt+3600_000)
	th.eventuallyEmpty(t)
	require.Equal(t, []*persistence.Rest{{Resting: true, Due: due}}, r.said(id))
}

// A task that is needed again in a moment stays out of the lists of resting tasks. Each entry costs
// a write, and each exit another one.
func TestATaskStaysAwakeForAShortTimerAndForAJob(t *testing.T) {
	th, r := startNotingRests(t)
	soon := th.begin(t, th.publish(t,
		`{"start":"t","nodes":{"t":{"kind":"timer","params":{"delay_ms":"$params.delay_ms"}}}}`),
		`{"delay_ms":60}`)
	require.Equal(t, flow.TaskCompleted, th.ended(t, soon).State.Status)
	for _, said := range r.said(soon) {
		require.False(t, said != nil && said.Resting, "%+v", said)
	}

	queued := th.begin(t, th.publish(t, `{"start":"q","nodes":{"q":{"exec_type":"queue","service":"s"}}}`), `{}`)
	require.Equal(t, []*persistence.Rest{nil}, r.said(queued)[:1])
	th.eventuallyEmpty(t)
	require.Equal(t, []*persistence.Rest{nil, atRest}, r.said(queued), "nobody came for its job")
}

func TestTheRowThatEndsTheWorkPutsItsTaskToRest(t *testing.T) {
	th, r := startNotingRests(t)
	id := th.begin(t, th.publish(t, `
start: work
nodes:
  work: {exec_type: queue, service: x}
  wait: {kind: approval, params: {approval_key: $shared.ok}}
edges:
  - {from: work, action: default, to: wait}
`), `{}`)
	job := th.poll(t, patience, 1, "x")[0]
	require.NoError(t, th.Complete(t.Context(), job.Job.ID(), flow.Report{Token: job.Token, Output: json.RawMessage(`1`)}))
	said := r.said(id)
	require.Equal(t, atRest, said[len(said)-1])
	row, err := th.store.Task(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "wait", row.Cursor, "lists tell where it waits")
	th.eventuallyEmpty(t)
	require.Equal(t, said, r.said(id))
}

// A caller that starts a task in its own transaction has stored that it is due at once.
func TestATaskDueAtOnceRestsUntilItsNextTime(t *testing.T) {
	th, r := startNotingRests(t)
	version := th.publish(t, "concurrency: {key: only, limit: 1}\n"+untilApproved)
	first := th.begin(t, version, `{}`)
	second, err := th.Begin(t.Context(), engine.NewTask{VersionID: version})
	require.NoError(t, err)
	_, err = th.store.Commit(t.Context(), th.Incarnation(), []persistence.Commit{second.Commit})
	require.NoError(t, err)

	require.Eventually(t, func() bool { return len(r.said(second.Commit.Task)) == 2 }, patience, time.Millisecond)
	require.Equal(t, atRest, r.said(second.Commit.Task)[1], "it waits for the key")
	require.Eventually(t, func() bool {
		wakes, err := th.store.DueWakes(t.Context(), nil, time.Now().Add(time.Hour).UnixMilli(), 10)
		return err == nil && len(wakes) == 0
	}, patience, time.Millisecond)

	require.NoError(t, th.Do(t.Context(), first, flow.Signal{Key: "ok", Value: json.RawMessage(`1`)}, ""))
	th.ended(t, first)
	require.NoError(t, th.Do(t.Context(), second.Commit.Task, flow.Signal{Key: "ok", Value: json.RawMessage(`1`)}, ""))
	require.Equal(t, flow.TaskCompleted, th.ended(t, second.Commit.Task).State.Status)
}

func TestALargeStateIsWrittenOnlyAsCheckpoints(t *testing.T) {
	var mu sync.Mutex
	var checkpoints, passing []int64 // row numbers
	th := start(t, actors.Config{IdleAfter: 30 * time.Millisecond, Store: faulty.Wrap(newLeaping(),
		faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range batch {
				switch {
				case c.Checkpoint:
					checkpoints = append(checkpoints, c.Seq)
				case c.Snapshot != nil:
					passing = append(passing, c.Seq)
				}
			}
			return faulty.Fault{}
		}})})
	text := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	for i, size := range []int{600 << 10, 900 << 10} {
		require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: fmt.Sprint(i), Value: text(size)}, ""))
	}
	for range 3 {
		th.eventuallyEmpty(t)
		// a small state would be written when it rests
		require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "k", Value: text(20 << 10)}, ""))
	}
	th.eventuallyEmpty(t)
	require.Equal(t, []int64{2, 3}, checkpoints)
	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "ok", Value: json.RawMessage(`true`)}, ""))
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	require.Equal(t, []int64{2, 3, 7}, checkpoints, "and at the end")
	require.Empty(t, passing)
}
