package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// approvalThenJobs are flows with an approval, and then jobs of a plain step, or of a step with its
// own actor.
var approvalThenJobs = map[string]string{
	"a plain step": `{"start":"ok","nodes":{"ok":{"kind":"approval","params":{"approval_key":"$shared.ok"}},"a":{"exec_type":"local_func","func":"f"}},
		"edges":[{"from":"ok","action":"default","to":"a"}]}`,
	"a step with an actor": `{"start":"ok","nodes":{"ok":{"kind":"approval","params":{"approval_key":"$shared.ok"}},
		"a":{"kind":"parallel","exec_type":"local_func","parallel_mode":"concurrent","parallel_services":["x","y"]}},
		"edges":[{"from":"ok","action":"default","to":"a"}]}`,
}

var approved = flow.Signal{Key: "ok", Value: []byte(`true`)}

// armedCommit determines the result of a commit when it is armed: it is stored, and then answered
// as the test wants.
type armedCommit struct {
	armed  atomic.Bool
	stored chan struct{}
	then   func() error
	cut    atomic.Bool // no task can be loaded
}

func (w *armedCommit) wrapStore(o model.Options) persistence.Store {
	w.stored = make(chan struct{}, 1)
	return faulty.Wrap(model.New(o), faulty.Hooks{
		Commit: func(string, []persistence.Commit) faulty.Fault {
			if !w.armed.Swap(false) {
				return faulty.Fault{}
			}
			return faulty.Fault{After: func(context.Context) error {
				w.stored <- struct{}{}
				return w.then()
			}}
		},
		Call: func(_ context.Context, name string) error {
			if name == "Load" && w.cut.Load() {
				return faulty.ErrFailed
			}
			return nil
		},
	})
}

func TestJobsStartedByAnUnansweredCommitRunAfterAMove(t *testing.T) {
	for name, text := range approvalThenJobs {
		t.Run(name, func(t *testing.T) {
			w := &armedCommit{then: func() error { return faulty.ErrLost }}
			c, l, a, b := newPair(t, w.wrapStore(model.Options{}))
			close(l.free)
			id := a.begin(t, a.publish(t, text), `{}`)
			w.armed.Store(true)
			w.cut.Store(true)
			answered := make(chan error, 1)
			go func() { answered <- a.Do(t.Context(), id, approved, "") }()
			<-w.stored
			handedOver(t, c, a, b)
			w.cut.Store(false)
			require.Equal(t, flow.Moved, flow.ErrorKindOf(<-answered))
			require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
			require.Empty(t, l.repeated())
		})
	}
}

func TestJobsUnsentBecauseOfACrashDuringAMoveAreCarriedOut(t *testing.T) {
	for name, text := range approvalThenJobs {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			w := &armedCommit{then: func() error {
				<-release
				return nil
			}}
			c, l := newCircuit(w.wrapStore(model.Options{})), newLedger().freed()
			cfg := withFunc(l.carrier("a"))
			cfg.Host.Probe = func(_ string, message any) {
				if fmt.Sprintf("%T", message) == "journal.Written" && len(w.stored) > 0 {
					<-w.stored
					panic("a planted crash")
				}
			}
			a := c.join(t, cfg)
			c.give(a, persistence.AllShards()...)
			b := c.join(t, withFunc(l.carrier("b")))
			id := a.begin(t, a.publish(t, text), `{}`)
			w.armed.Store(true)
			go func() { _ = a.Do(t.Context(), id, approved, "") }()
			require.Eventually(t, func() bool { return len(w.stored) == 1 }, patience, time.Millisecond)
			lost := make(chan error, 1)
			go func() { lost <- a.Lose(t.Context(), persistence.AllShards()) }()
			require.Eventually(t, func() bool {
				return flow.ErrorKindOf(a.Do(t.Context(), neighbor(id), flow.Pause{}, "")) == flow.Moved
			}, patience, time.Millisecond)
			close(release)
			require.NoError(t, <-lost)
			c.give(b, persistence.AllShards()...)
			require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
			require.Empty(t, l.repeated())
		})
	}
}

func TestACarrierIsAskedAgainForJobsThatHaveNotEnded(t *testing.T) {
	clock := quick{time.Now()}
	w := &armedCommit{then: func() error { return faulty.ErrLost }}
	c, l := newCircuit(w.wrapStore(model.Options{Now: clock.Now})), newLedger().freed()
	var members [2]*harness
	for i := range members {
		cfg := withFunc(l.carrier(fmt.Sprint(i)))
		cfg.Host.Clock = clock
		members[i] = c.join(t, cfg)
	}
	a, b := members[0], members[1]
	var asked atomic.Int64
	c.lines[b].drop = func() bool { return asked.Add(1) <= 2 }
	c.give(a, persistence.AllShards()...)
	id := a.insist(t, engine.NewTask{VersionID: a.publish(t, approvalThenJobs["a plain step"]),
		Params: json.RawMessage(`{}`), Key: "k"})
	w.cut.Store(true)
	w.armed.Store(true)
	go func() { _ = a.Do(t.Context(), id, approved, "") }()
	<-w.stored
	handedOver(t, c, a, b)
	w.cut.Store(false)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	require.EqualValues(t, 3, asked.Load())
	require.Empty(t, l.repeated())
}
