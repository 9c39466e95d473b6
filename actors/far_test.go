package actors_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// heartbeat is the interval for attached workers. A worker that is silent for three times as long
// is gone.
const heartbeat = time.Second

// withSessions returns the configuration of a member that workers may attach to.
func withSessions(t *testing.T, grace time.Duration) (actors.Config, *attached.Sessions) {
	s := attached.New(attached.Options{Grace: grace, Heartbeat: heartbeat, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return actors.Config{Relay: s}, s
}

// hand is an attached worker: it counts its jobs, and finishes them when it is freed.
type hand struct {
	t    *testing.T
	mu   sync.Mutex
	got  map[string]int // by job id
	free chan struct{}  // jobs wait until it is closed
}

func newHand(t *testing.T) *hand {
	return &hand{t: t, got: map[string]int{}, free: make(chan struct{})}
}

func (h *hand) freed() *hand {
	close(h.free)
	return h
}

func (h *hand) jobs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.got)
}

func (h *hand) repeated() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, n := range h.got {
		if n > 1 {
			ids = append(ids, fmt.Sprintf("%s: %d times", id, n))
		}
	}
	return ids
}

// stream is the worker's side of a stream, with heartbeats.
type stream struct {
	to     chan *attach.FromWorker
	over   context.Context
	cut    context.CancelFunc
	done   chan struct{} // closed when the member has noticed the end
	silent bool          // it sends no heartbeats by itself
}

func newStream() *stream {
	l := &stream{to: make(chan *attach.FromWorker, 1000), done: make(chan struct{})}
	l.over, l.cut = context.WithCancel(context.Background())
	return l
}

// serve makes a member serve the worker of this stream.
func (l *stream) serve(t *testing.T, s *attached.Sessions, worker attached.Stream) {
	go func() {
		defer close(l.done)
		if err := s.Serve(context.Background(), worker); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		l.cut()
		<-l.done
	})
}

func (l *stream) Receive() (*attach.FromWorker, error) {
	var sign <-chan time.Time
	if !l.silent {
		sign = time.After(heartbeat / 2)
	}
	select {
	case m := <-l.to:
		return m, nil
	case <-sign:
		return &attach.FromWorker{}, nil
	case <-l.over.Done():
		return nil, errors.New("hung up")
	}
}

func (l *stream) HangUp() { l.cut() }

// handLine is one stream of a hand.
type handLine struct {
	*stream
	hand *hand
}

// attach attaches it to a member.
func (h *hand) attach(s *attached.Sessions, credits uint32) *handLine {
	l := &handLine{newStream(), h}
	l.to <- &attach.FromWorker{Hello: &attach.Hello{Protocol: 1, Worker: "hand", Services: []string{"s"}, Credits: credits}}
	l.serve(h.t, s, l)
	return l
}

func (l *handLine) Send(m *attach.ToWorker) error {
	for _, j := range m.GetJobs() {
		l.hand.mu.Lock()
		l.hand.got[j.GetId()]++
		l.hand.mu.Unlock()
		go l.work(j.GetNumber())
	}
	for _, n := range m.GetCanceled() {
		l.say(&attach.Result{Number: n, Outcome: attach.Outcome_OUTCOME_CANCELED})
	}
	return l.over.Err()
}

func (l *handLine) work(number uint64) {
	select {
	case <-l.hand.free:
		l.say(&attach.Result{Number: number, Outcome: attach.Outcome_OUTCOME_COMPLETED, Output: []byte(`1`)})
	case <-l.over.Done():
	}
}

func (l *handLine) say(r *attach.Result) {
	select {
	case l.to <- &attach.FromWorker{Results: []*attach.Result{r}}:
	case <-l.over.Done():
	}
}

// joinThreeMembers returns three members that share all tasks. Workers may attach to each.
func joinThreeMembers(t *testing.T, c *circuit, grace time.Duration) (members []*harness, sessions []*attached.Sessions) {
	for range 3 {
		cfg, s := withSessions(t, grace)
		members, sessions = append(members, c.join(t, cfg)), append(sessions, s)
	}
	for shard := range persistence.Shards {
		c.give(members[shard%3], shard)
	}
	return members, sessions
}

// beginAll starts n tasks of a version, at all members.
func (c *circuit) beginAll(t *testing.T, members []*harness, version string, n int) (ids []string) {
	for len(ids) < n {
		for _, th := range members {
			if id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: []byte(listOf(3))}); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

const remoteJob = `{"start":"a","nodes":{"a":{"exec_type":"remote","service":"s"}}}`
const remoteJobs = `{"start":"a","nodes":{"a":{"kind":"foreach","exec_type":"remote","service":"s","parallel_mode":"concurrent","prep":{"input_key":"$params.list"}},
	"b":{"exec_type":"remote","service":"s"}},"edges":[{"from":"a","action":"default","to":"b"}]}`

func awaitOffer(t *testing.T, s ...*attached.Sessions) {
	for _, s := range s {
		require.Eventually(t, func() bool { return s.Offers(&flow.Exec{Type: flow.ExecRemote, Service: "s"}) }, patience, time.Millisecond)
	}
}

func TestOneAttachedWorkerGetsTheJobsOfAllMembers(t *testing.T) {
	c := newCircuit(nil)
	members, sessions := joinThreeMembers(t, c, time.Hour)
	h := newHand(t).freed()
	h.attach(sessions[2], 10)
	awaitOffer(t, sessions...)
	ids := c.beginAll(t, members, members[0].publish(t, remoteJobs), 100)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	require.Empty(t, h.repeated())
	require.Equal(t, 4*len(ids), h.jobs())
}

func TestJobsWaitForACreditAnywhereAndFailWithoutAWorker(t *testing.T) {
	c := newCircuit(nil)
	members, sessions := joinThreeMembers(t, c, -1)
	version := members[0].publish(t, remoteJob)
	require.Equal(t, "a: no worker for service s", c.ended(t, c.beginAll(t, members[:1], version, 1)[0]).State.Error)

	h := newHand(t)
	l := h.attach(sessions[2], 1)
	awaitOffer(t, sessions...)
	ids := c.beginAll(t, members, version, 30)
	require.Eventually(t, func() bool { return h.jobs() == 1 }, patience, time.Millisecond)
	second := newHand(t).freed()
	second.attach(sessions[1], 1) // frees all jobs except that of the first worker
	require.Eventually(t, func() bool { return second.jobs() == len(ids)-1 }, patience, time.Millisecond)
	close(h.free)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	require.Equal(t, 1, h.jobs())
	l.cut()
}

func TestTaskMovesDoNotRepeatJobsOfTheirWorker(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c := newCircuit(nil)
			members, sessions := joinThreeMembers(t, c, time.Hour)
			h := newHand(t).freed()
			h.attach(sessions[rng.IntN(3)], uint32(1+rng.IntN(20)))
			awaitOffer(t, sessions...)
			version := members[0].publish(t, remoteJobs)
			ids := c.beginAll(t, members, version, 40)
			for range 60 {
				c.move(t, members[rng.IntN(3)], shardOf(ids[rng.IntN(len(ids))])...)
			}
			for _, id := range ids {
				require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
			}
			require.Empty(t, h.repeated())
			require.Equal(t, 4*len(ids), h.jobs())
		})
	}
}

// When a member loses a task, jobs that it was about to send are void, even if it owns the task
// again later.
func TestAnUnsentJobIsDroppedAfterItsTaskHasMoved(t *testing.T) {
	c := newCircuit(nil)
	members, sessions := joinThreeMembers(t, c, time.Hour)
	a, b := members[0], members[2]
	h := newHand(t).freed()
	h.attach(sessions[2], 20)
	awaitOffer(t, sessions...)
	version := a.publish(t, remoteJob)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	asked := make(chan struct{}, 100)
	c.lines[a].drop = func() bool {
		asked <- struct{}{}
		<-gate
		return false
	}
	first := c.beginAll(t, []*harness{a}, version, 1)[0]
	<-asked // a is sending the first job: others wait
	ids := c.beginAll(t, []*harness{a}, version, 5)
	for _, id := range ids {
		if persistence.ShardOf(id) == persistence.ShardOf(first) {
			continue
		}
		require.Eventually(t, func() bool { return a.IsJobQueued(b.Incarnation(), id) }, patience, time.Millisecond)
		c.move(t, b, shardOf(id)...)
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
		c.move(t, a, shardOf(id)...)
	}
	open()
	last := c.beginAll(t, []*harness{a}, version, 1)[0]
	for _, id := range []string{first, last} {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	require.Empty(t, h.repeated())
}

func TestAMemberWithoutTheWorkerMayEndWhileItsJobsRun(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *circuit, []*harness){
		"in order": func(t *testing.T, c *circuit, members []*harness) {
			for shard := range persistence.Shards {
				if c.at(shard) == members[0] {
					c.move(t, members[1], shard)
				}
			}
			require.NoError(t, members[0].Stop(t.Context()))
			c.leave(members[0])
		},
		"killed": func(t *testing.T, c *circuit, members []*harness) {
			c.die(t, members[0])
			for _, th := range members[1:] {
				th.Gone(members[0].Incarnation(), false)
			}
			for shard := range persistence.Shards {
				if c.at(shard) == members[0] {
					c.give(members[1], shard)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCircuit(nil)
			members, sessions := joinThreeMembers(t, c, time.Hour)
			h := newHand(t)
			h.attach(sessions[2], 20)
			awaitOffer(t, sessions...)
			ids := c.beginAll(t, members, members[0].publish(t, remoteJobs), 30)
			require.Eventually(t, func() bool { return h.jobs() == 20 }, patience, time.Millisecond)
			end(t, c, members)
			close(h.free)
			for _, id := range ids {
				require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
			}
			require.Empty(t, h.repeated())
			require.Equal(t, 4*len(ids), h.jobs())
		})
	}
}

func TestACancelReachesAnAttachedWorkerAtAnotherMember(t *testing.T) {
	c := newCircuit(nil)
	members, sessions := joinThreeMembers(t, c, time.Hour)
	h := newHand(t)
	h.attach(sessions[2], 1)
	awaitOffer(t, sessions...)
	version := members[0].publish(t, remoteJob)
	id := c.beginAll(t, members[:1], version, 1)[0]
	require.Eventually(t, func() bool { return h.jobs() == 1 }, patience, time.Millisecond)
	require.NoError(t, members[0].Cancel(t.Context(), id, flow.Cancel{}))
	require.Equal(t, flow.TaskCanceled, c.ended(t, id).State.Status)
	other := c.beginAll(t, members[:1], version, 1)[0]
	require.Eventually(t, func() bool { return h.jobs() == 2 }, patience, time.Millisecond, "its credit is free again")
	close(h.free)
	require.Equal(t, flow.TaskCompleted, c.ended(t, other).State.Status)
}

func TestAStepThatCrashesWhileSendingAJobSendsItAgain(t *testing.T) {
	c := newCircuit(nil)
	var members []*harness
	var sessions []*attached.Sessions
	var mu sync.Mutex
	crashes := map[string]int{} // by task; after a few more its step would fail
	for range 3 {
		cfg, s := withSessions(t, time.Hour)
		cfg.Host.Probe = func(_ string, message any) {
			mu.Lock()
			defer mu.Unlock()
			for _, job := range actors.Shared(message) {
				if job.Given > 0 && crashes[job.Task] < 2 {
					crashes[job.Task]++
					panic("a step crashes")
				}
			}
		}
		members, sessions = append(members, c.join(t, cfg)), append(sessions, s)
	}
	for shard := range persistence.Shards {
		c.give(members[shard%2], shard)
	}
	h := newHand(t).freed()
	h.attach(sessions[2], 10)
	awaitOffer(t, sessions...)
	ids := c.beginAll(t, members[:2], members[0].publish(t, remoteJobs), 20)
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
	}
	require.Empty(t, h.repeated())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, crashes, len(ids), "each of them crashed")
}

func TestAWaitingJobReportsItsLatestDelivery(t *testing.T) {
	c := newCircuit(nil)
	owner := c.join(t, actors.Config{})
	c.give(owner, persistence.AllShards()...)
	cfg, sessions := withSessions(t, -1)
	carrier := c.join(t, cfg)
	reports := make(chan flow.Report, 10)
	c.lines[carrier].hold = func(o engine.Order) {
		if r, ok := o.Command.(flow.Report); ok && r.Address.Node == "waits" {
			reports <- r
		}
	}
	l := newHand(t).attach(sessions, 1)
	awaitOffer(t, sessions)
	give := func(node string, given int) {
		job := engine.Job{Task: "task-of-nobody", Address: flow.Address{Node: node, Visit: 1, Attempt: 1}, Service: "s"}
		require.NoError(t, carrier.Carry(t.Context(), engine.Errands{{Job: job, Type: flow.ExecRemote, Given: given}}))
	}
	give("busy", 1)
	give("waits", 1)
	give("waits", 3)
	give("waits", 2) // late withdrawal
	l.cut()
	require.Equal(t, flow.Report{Address: flow.Address{Node: "waits", Visit: 1, Attempt: 1},
		Lost: true, Unbegun: true, Given: 3}, <-reports)
}
