package actors

import (
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// pier notes what is sent at a time.
type pier struct{ sent chan []Passage }

func (p pier) Offers(*flow.Exec) bool { return true }
func (p pier) Send(jobs []Passage)    { p.sent <- append([]Passage(nil), jobs...) }
func (p pier) CallOff(Passage)        { p.sent <- nil }
func (p pier) Shut()                  {}

func TestJobsOfErrandsThatCameTogetherAreSentTogether(t *testing.T) {
	const errands = 10
	to := pier{make(chan []Passage, errands)}
	m := &Member{ctx: t.Context(), system: actor.NewActorSystem(libraryLog(slog.New(slog.DiscardHandler)))}
	m.envoy = newEnvoy(m)
	s := &sessions{m: m, ferry: &ferry{m: m, relay: to}, flights: map[jobKey]*flight{}, tasks: map[string]*flight{}}
	s.queue = newQueue(m)
	busy, free := make(chan struct{}), make(chan struct{})
	m.sessions = m.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			close(busy)
			<-free
		case errand, sail:
			s.Receive(c)
		}
	}))
	<-busy
	b := &basket{m: m, owner: &owner{}}
	job := func(node string) flow.Address { return flow.Address{Node: node, Visit: 1} }
	for n := range errands {
		m.tell(m.sessions, errand{"t", []flow.Effect{flow.Dispatch{Job: flow.Job{Task: "t", Address: job(string(rune('a' + n))), Exec: &flow.Exec{Type: flow.ExecRemote}}}}, b})
	}
	close(free)
	require.Len(t, <-to.sent, errands, "and in one piece")
	m.tell(m.sessions, errand{"t", []flow.Effect{
		flow.Dispatch{Job: flow.Job{Task: "t", Address: job("z"), Exec: &flow.Exec{Type: flow.ExecRemote}}}, flow.Withdraw{Address: job("z")}}, b})
	require.Len(t, <-to.sent, 1, "what is withdrawn was sent before")
	require.Empty(t, <-to.sent)
	require.NoError(t, m.system.Root.PoisonFuture(m.sessions).Wait())
}
