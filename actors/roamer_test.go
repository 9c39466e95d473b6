package actors_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// roamer is an attached worker that moves between members with its jobs. It finishes them when the
// test says so.
type roamer struct {
	t       *testing.T
	mu      sync.Mutex
	session string
	jobs    map[uint64]*attach.Job // its jobs, by number
	results map[uint64]*attach.Result
	got     map[string]int // how often it got each job, by id
	stopped map[string]bool
	line    *roamLine
}

// roamLine is one stream of a roamer.
type roamLine struct {
	*roamer
	*stream
	welcome chan *attach.Welcome
}

func newRoamer(t *testing.T) *roamer {
	return &roamer{t: t, jobs: map[uint64]*attach.Job{}, results: map[uint64]*attach.Result{},
		got: map[string]int{}, stopped: map[string]bool{}}
}

// come attaches the worker with all its jobs; the previous stream has ended.
func (r *roamer) come(s *attached.Sessions) *attach.Welcome {
	r.part()
	l := &roamLine{r, newStream(), make(chan *attach.Welcome, 1)}
	l.silent = true // until the test makes it speak
	r.mu.Lock()
	hello := &attach.Hello{Protocol: 1, Worker: "roamer", Services: []string{"s"}, Credits: 100, Session: r.session}
	for n, j := range r.jobs {
		hello.Brought = append(hello.Brought, &attach.Brought{Number: n, Id: j.GetId(), Ticket: j.GetTicket()})
		if r.results[n] == nil {
			hello.Held = append(hello.Held, n)
			continue
		}
		hello.Finished = append(hello.Finished, n)
	}
	l.to <- &attach.FromWorker{Hello: hello}
	for _, result := range r.results {
		l.to <- &attach.FromWorker{Results: []*attach.Result{result}}
	}
	r.line = l
	r.mu.Unlock()
	l.serve(r.t, s, l)
	w := <-l.welcome
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = w.GetSession()
	return w
}

// part ends the stream.
func (r *roamer) part() {
	r.mu.Lock()
	l := r.line
	r.mu.Unlock()
	if l != nil {
		l.cut()
		<-l.done
	}
}

func (l *roamLine) Send(m *attach.ToWorker) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over.Err() != nil:
		return l.over.Err()
	case l.line != l: // nobody reads it
		return nil
	}
	if m.GetWelcome() != nil {
		l.welcome <- m.GetWelcome()
	}
	for _, j := range m.GetJobs() {
		l.got[j.GetId()]++
		l.jobs[j.GetNumber()] = j
	}
	for _, n := range m.GetCanceled() {
		l.stopped[l.jobs[n].GetId()] = true
		l.finish(n, attach.Outcome_OUTCOME_CANCELED)
	}
	for _, n := range m.GetAcknowledged() {
		delete(l.jobs, n)
		delete(l.results, n)
	}
	return nil
}

// finish finishes a job, with or without a stream. The caller holds the lock.
func (r *roamer) finish(number uint64, how attach.Outcome) {
	r.results[number] = &attach.Result{Number: number, Outcome: how, Output: []byte(`1`)}
	if r.line != nil && r.line.over.Err() == nil {
		r.line.to <- &attach.FromWorker{Results: []*attach.Result{r.results[number]}}
	}
}

// finishAll finishes all its jobs.
func (r *roamer) finishAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range r.jobs {
		if r.results[n] == nil {
			r.finish(n, attach.Outcome_OUTCOME_COMPLETED)
		}
	}
}

func (r *roamer) has(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.jobs) == n
	}, patience, time.Millisecond)
}

// onceEach requires that no job was sent to it twice, and none was canceled.
func (r *roamer) onceEach() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, n := range r.got {
		require.Equal(r.t, 1, n, "times that job %s was sent", id)
	}
	require.Empty(r.t, r.stopped)
}

// roaming returns the configuration of a member whose workers may come from others.
func roaming(t *testing.T, grace time.Duration) (actors.Config, *attached.Sessions) {
	s := attached.New(attached.Options{Secret: "secret", Grace: grace, Heartbeat: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return actors.Config{Relay: s, Workers: pushing{}}, s
}

// pushing knows push workers with the same service as attached ones, and no signs of life.
type pushing struct{}

func (pushing) Polled(string)           {}
func (pushing) Signs(string) flow.Signs { return flow.Signs{} }
func (pushing) Pushed() []string        { return []string{"s"} }

// jobsToBring are definitions with one job for attached workers.
var jobsToBring = map[string]string{"for them alone": remoteJob,
	"that push workers get, too": `{"start":"a","nodes":{"a":{"exec_type":"push","service":"s"}}}`}

// realm is three members that share all tasks, with workers that come and go.
type realm struct {
	*circuit
	members  []*harness
	sessions []*attached.Sessions
	version  string
}

func newRealm(t *testing.T, grace time.Duration) *realm {
	r := &realm{circuit: newCircuit(nil)}
	for range 3 {
		cfg, s := roaming(t, grace)
		r.members, r.sessions = append(r.members, r.join(t, cfg)), append(r.sessions, s)
	}
	for shard := range persistence.Shards {
		r.give(r.members[shard%3], shard)
	}
	r.version = r.members[0].publish(t, remoteJob)
	return r
}

// kill kills a member; the others share its shards.
func (r *realm) kill(t *testing.T, i int) {
	r.die(t, r.members[i])
	r.gone(i, false)
}

// gone notifies the others that a member is gone.
func (r *realm) gone(i int, left bool) {
	for n, th := range r.members {
		if n != i {
			th.Gone(r.members[i].Incarnation(), left)
		}
	}
	r.leave(r.members[i])
	for shard := range persistence.Shards {
		if r.at(shard) == r.members[i] {
			r.give(r.members[(i+1)%3], shard)
		}
	}
}

func (r *realm) begin(t *testing.T, n int) []string { return r.beginAll(t, r.members, r.version, n) }

func (r *realm) allEnd(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		v := r.ended(t, id)
		require.Equal(t, flow.TaskCompleted, v.State.Status, v.State.Error)
	}
}

// history returns the events of a task's attempts.
func (r *realm) history(t *testing.T, id string) (events []string) {
	rows, err := r.store.Rows(t.Context(), id, 0, persistence.Part{Rows: 1000, Bytes: 1 << 20})
	require.NoError(t, err)
	for _, row := range rows {
		all, err := flow.DecodeEvents(row.Events)
		require.NoError(t, err)
		for _, e := range all {
			events = append(events, string(e.Type)+" "+e.Worker)
		}
	}
	return events
}

// moves counts how often a task's job moved with its worker.
func (r *realm) moves(t *testing.T, id string) (n int) {
	for _, e := range r.history(t, id) {
		if e == "attempt_moved roamer" {
			n++
		}
	}
	return n
}

// holds gives a worker of the first member 30 jobs of tasks of all members.
func (r *realm) holds(t *testing.T, w *roamer, job string) (tasks []string) {
	w.come(r.sessions[0])
	awaitOffer(t, r.sessions...)
	tasks = r.beginAll(t, r.members, r.members[0].publish(t, job), 30)
	w.has(len(tasks))
	return tasks
}

// moved waits until the jobs of tasks have moved with the worker the given number of times. They
// may have moved more often: if a worker comes again before its member knows that it is the
// carrier, the job is passed once more.
func (r *realm) moved(t *testing.T, ids []string, times int) {
	t.Helper()
	for _, id := range ids {
		require.Eventually(t, func() bool { return r.moves(t, id) >= times }, patience, time.Millisecond)
	}
}

// handOver moves all tasks of a member.
func (r *realm) handOver(t *testing.T, from, to int) {
	for shard := range persistence.Shards {
		if r.at(shard) == r.members[from] {
			r.move(t, r.members[to], shard)
		}
	}
}

// slip leaves without the member noticing.
func (r *roamer) slip() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line = nil
}

// say sends a heartbeat.
func (r *roamer) say() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line.to <- &attach.FromWorker{}
}

// half finishes half of its jobs.
func (r *roamer) half() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for number := range r.jobs {
		if n < len(r.jobs)/2 {
			n++
			r.finish(number, attach.Outcome_OUTCOME_COMPLETED)
		}
	}
	return n
}

func (r *realm) status(t *testing.T, id string) flow.TaskStatus {
	row, err := r.store.Task(t.Context(), id)
	require.NoError(t, err)
	return flow.TaskStatus(row.Status)
}
