package actors

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
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

func TestAJobThatComesTooLateToStartCannotMigrate(t *testing.T) {
	m := &Member{ctx: t.Context()}
	m.cfg.Host.Clock, m.cfg.Lease = realClock{}, time.Hour
	m.lease = &lease{m: m, renewed: time.Now()}
	w := &relayQueue{m: m}
	f := &activeJob{key: jobKey{task: "t"}, route: w,
		dispatch: flow.Dispatch{Job: flow.Job{Task: "t", Exec: &flow.Exec{Type: flow.ExecRemote}}}}
	w.relay = late{job: f}
	m.cfg.Relay = w.relay
	w.close()
	require.True(t, w.isIdle())
	require.False(t, (&sessions{m: m}).canMigrate(f), "nobody is at it")
}

func TestJobsOfConcurrentErrandsAreSentTogether(t *testing.T) {
	const errands = 10
	to := sendRecorder{make(chan []Passage, errands)}
	m := &Member{ctx: t.Context(), system: actor.NewActorSystem(libraryLog(slog.New(slog.DiscardHandler)))}
	m.orderForwarder = newOrderForwarder(m)
	s := &sessions{m: m, relayQueue: &relayQueue{m: m, relay: to},
		activeJobs: map[jobKey]*activeJob{}, newestByTask: map[string]*activeJob{}}
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
