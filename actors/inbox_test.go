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
