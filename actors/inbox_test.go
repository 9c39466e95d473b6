package actors

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// counter counts the reports that an actor gets.
type counter struct{ told atomic.Int64 }

func (k *counter) Receive(c actor.Context) {
	if _, ok := c.Message().(*taskCommand); ok {
		k.told.Add(1)
	}
}

func TestAReportDuringTheLastDrainOfItsInboxIsNotLost(t *testing.T) {
	const rounds, each = 3000, 300
	var told counter
	m := &Member{memberRuntime: memberRuntime{system: actor.NewActorSystem(libraryLog(slog.New(slog.DiscardHandler)))}}
	pid := m.system.Root.Spawn(actor.PropsFromFunc(told.Receive))
	taken := 0
	for range rounds {
		in := &inbox{m: m, taskOwner: ownerAt(pid)}
		k := in.addChild()
		var both sync.WaitGroup
		landing := make(chan struct{})
		both.Go(func() {
			for i := range each {
				k.addReport(&activeJob{report: flow.Report{}})
				if i == each/3 {
					close(landing)
				}
			}
		})
		<-landing
		in.drainReports(func(landed []*activeJob) { taken += len(landed) }, true)
		both.Wait()
	}
	require.NoError(t, m.system.Root.PoisonFuture(pid).Wait())
	require.EqualValues(t, rounds*each, told.told.Load()+int64(taken))
}

// passing is the actor of a task that has nothing left to decide: it passes all reports on.
type passing struct{ tasks *actor.PID }

func (p passing) Receive(c actor.Context) {
	if cmd, ok := c.Message().(*taskCommand); ok {
		c.Send(p.tasks, cmd)
	}
}

func TestReportsOfExternalWorkOutliveTheActorOfTheirTask(t *testing.T) {
	const rounds, each = 300, 100
	var told counter
	m := &Member{memberRuntime: memberRuntime{system: actor.NewActorSystem(libraryLog(slog.New(slog.DiscardHandler)))}}
	m.tasks = m.system.Root.Spawn(actor.PropsFromFunc(told.Receive))
	external := flow.Report{Deferred: []flow.External{{Service: "s", ID: "x"}}}
	for range rounds {
		task := m.system.Root.Spawn(actor.PropsFromFunc(passing{m.tasks}.Receive))
		own := &inbox{m: m, taskOwner: ownerAt(task)}
		step := own.addChild()
		nested := step.addChild()
		var all sync.WaitGroup
		begun := make(chan struct{}, 3)
		for _, in := range []*inbox{own, step, nested} {
			all.Go(func() {
				for i := range each {
					in.addReport(&activeJob{report: external})
					in.addReport(&activeJob{report: flow.Report{}})
					if i == each/3 {
						begun <- struct{}{}
					}
				}
			})
		}
		<-begun
		step.close()
		<-begun
		own.retireOwner()
		require.NoError(t, m.system.Root.PoisonFuture(task).Wait())
		all.Wait()
	}
	require.NoError(t, m.system.Root.PoisonFuture(m.tasks).Wait())
	require.GreaterOrEqual(t, told.told.Load(), int64(rounds*each*3), "all that name external work")
}
