package actors

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/actors/forward"
	"github.com/troupe-engine/troupe/actors/lease"
	"github.com/troupe-engine/troupe/actors/values"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// sendRecorder records what is sent together.
type sendRecorder struct{ sent chan []Passage }

func (p sendRecorder) Offers(*flow.Exec) bool { return true }
func (p sendRecorder) Send(jobs []Passage)    { p.sent <- append([]Passage(nil), jobs...) }
func (p sendRecorder) CallOff(Passage)        { p.sent <- nil }
func (p sendRecorder) Shut()                  {}

// late is a relay that starts a job after Shut, which it has not seen yet.
type late struct {
	sendRecorder
	job Passage
}

func (l late) Grace() time.Duration                                      { return time.Minute }
func (l late) Roam(func(context.Context, engine.Orders) engine.Outcomes) {}
func (l late) Shut()                                                     { l.job.Begin() }

// renewing is a store that renews every lease.
type renewing struct{ persistence.Store }

func (renewing) Renew(context.Context, string, time.Duration) (persistence.Pulse, error) {
	return persistence.Pulse{Now: time.Now()}, nil
}

func TestAJobThatComesTooLateToStartCannotMigrate(t *testing.T) {
	m := &Member{memberRuntime: memberRuntime{work: background.New(t.Context(), host.Host{Clock: background.RealClock{}})}}
	m.lease = lease.New(lease.Config{TTL: time.Hour, Store: renewing{}})
	m.lease.SetWork(m.work)
	require.NoError(t, m.lease.Renew(t.Context()))
	w := &relayQueue{m: m}
	f := &activeJob{key: engine.JobKey{Task: "t"}, route: w,
		dispatch: flow.Dispatch{Job: flow.Job{Task: "t", Exec: &flow.Exec{Type: flow.ExecRemote}}}}
	w.relay = late{job: f}
	m.cfg.Relay = w.relay
	m.peers, m.values = newPeers(m), values.New(values.Config{})
	w.close()
	require.True(t, w.isIdle())
	require.False(t, (&sessions{m: m}).canMigrate(f), "nobody is at it")
}

func TestJobsOfConcurrentErrandsAreSentTogether(t *testing.T) {
	const errands = 10
	to := sendRecorder{make(chan []Passage, errands)}
	m := &Member{memberRuntime: memberRuntime{work: background.New(t.Context(), host.Host{Clock: background.RealClock{}}),
		system: actor.NewActorSystem(libraryLog(slog.New(slog.DiscardHandler)))}}
	m.orderForwarder = forward.NewOrders(forward.Config{Shards: &m.owned})
	m.peers, m.values = newPeers(m), values.New(values.Config{})
	s := &sessions{m: m, relayQueue: &relayQueue{m: m, relay: to},
		activeJobs: map[engine.JobKey]*activeJob{}, newestByTask: map[string]*activeJob{}}
	s.queue = newQueue(m)
	busy, free := make(chan struct{}), make(chan struct{})
	m.sessions = m.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			close(busy)
			<-free
		case jobErrand, sendRelayed:
			s.Receive(c)
		}
	}))
	<-busy
	in := &inbox{m: m, taskOwner: &taskOwner{}}
	job := func(node string) flow.Address { return flow.Address{Node: node, Visit: 1} }
	for n := range errands {
		m.sendMessage(m.sessions, jobErrand{"t",
			[]flow.Effect{flow.Dispatch{Job: flow.Job{Task: "t",
				Address: job(string(rune('a' + n))), Exec: &flow.Exec{Type: flow.ExecRemote}}}}, in})
	}
	close(free)
	require.Len(t, <-to.sent, errands, "and in one piece")
	m.sendMessage(m.sessions, jobErrand{"t", []flow.Effect{
		flow.Dispatch{Job: flow.Job{Task: "t", Address: job("z"),
			Exec: &flow.Exec{Type: flow.ExecRemote}}}, flow.Withdraw{Address: job("z")}}, in})
	require.Len(t, <-to.sent, 1, "what is withdrawn was sent before")
	require.Empty(t, <-to.sent)
	require.NoError(t, m.system.Root.PoisonFuture(m.sessions).Wait())
}
