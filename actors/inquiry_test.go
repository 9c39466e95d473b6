package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// quickly joins a member to a circuit whose store has the same clock.
func (c *circuit) quickly(t *testing.T, clock quick, cfg actors.Config) *harness {
	cfg.Host.Clock = clock
	return c.join(t, cfg)
}

func TestAJobIsCanceledEvenIfItsOwnerEndedBeforeTheWithdrawal(t *testing.T) {
	for name, tt := range map[string]struct {
		next    int  // member that owns the task in the end
		crashes bool // the actor of the task crashes at the carrier whenever it handles a message
	}{
		"and another one has the task by now":      {next: 2},
		"and its carrier has the task by now":      {next: 0},
		"and the task had crashed before it moved": {next: 2, crashes: true},
	} {
		t.Run(name, func(t *testing.T) {
			next := tt.next
			clock := quick{time.Now()}
			c := newCircuit(model.New(model.Options{Now: clock.Now}))
			begun, called := make(chan string, 10), make(chan string, 10)
			cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
				begun <- j.ID()
				<-ctx.Done()
				called <- j.ID()
				return flow.Report{Error: "called off"}
			})
			var crashing atomic.Bool
			fragile := cfg
			fragile.Host.Probe = func(kind string, _ any) {
				if kind == "task" && crashing.Load() {
					panic("a planted crash")
				}
			}
			members := []*harness{c.quickly(t, clock, fragile), c.quickly(t, clock, cfg), c.quickly(t, clock, cfg)}
			carrier, owner := members[0], members[1]
			c.give(carrier, persistence.AllShards()...)
			version := carrier.publish(t, oneJob)
			id, other := carrier.begin(t, version, `{}`), carrier.begin(t, version, `{}`)
			jobs := []string{<-begun, <-begun}
			crashing.Store(tt.crashes)
			c.move(t, owner, persistence.AllShards()...)
			c.lines[owner].drop = func() bool { return true } // the withdrawal never arrives
			require.NoError(t, owner.Cancel(t.Context(), id, flow.Cancel{Force: true}))
			require.Equal(t, flow.TaskCanceled, c.ended(t, id).State.Status)
			c.die(t, owner)
			for _, th := range []*harness{members[0], members[2]} {
				th.Gone(owner.Incarnation(), false)
			}
			c.give(members[next], persistence.AllShards()...)
			select {
			case job := <-called:
				task, _, err := flow.ParseJobID(job)
				require.NoError(t, err)
				require.Equal(t, id, task)
			case <-time.After(patience):
				require.Fail(t, "it is carried out though nobody waits for it")
			}
			require.Contains(t, jobs, flow.JobID(other, flow.Address{Node: "a", Visit: 1, Attempt: 1}))
			require.NoError(t, members[next].Do(t.Context(), other, flow.Pause{}, ""))
			require.Empty(t, called, "somebody waits for the other one")
			require.Empty(t, begun)
		})
	}
}
