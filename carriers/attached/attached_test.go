package attached_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// job is a job for a relay, which puts its reports into a channel.
type job struct {
	n       int
	service string
	labels  []string
	kind    flow.ExecType // "" means remote
	reports chan flow.Report
	over    bool
	foreign bool // of another member's task
	at      int64
	given   int
	input   []byte
	begun   chan struct{} // may be nil

	function *flow.FunctionCall // of a function that is a flow
	host     carriers.FunctionHost
}

func newJob(n int, service string, labels ...string) *job {
	return &job{n: n, service: service, labels: labels, reports: make(chan flow.Report, 10)}
}

func (j *job) Job() flow.Job {
	return flow.Job{Task: fmt.Sprint("t", j.n), Address: flow.Address{Node: "a", Visit: 1,
		Attempt: 1}, EnqueuedAt: j.at, Given: j.given, Input: j.input,
		Exec: &flow.Exec{Type: cmp.Or(j.kind, flow.ExecRemote), Service: j.service, Func: strings.TrimPrefix(j.service, "flow:"),
			Labels: j.labels}, Function: j.function}
}
func (j *job) FunctionHost() carriers.FunctionHost { return j.host }
func (j *job) Of() (task string, at flow.Address) {
	return fmt.Sprint("t", j.n), flow.Address{Node: "a", Visit: 1, Attempt: 1}
}
func (j *job) Begin() bool {
	if j.begun != nil {
		j.begun <- struct{}{}
	}
	return !j.over
}
func (j *job) Foreign() bool      { return j.foreign }
func (j *job) Over() bool         { return j.over }
func (j *job) Land(r flow.Report) { j.reports <- r }
func (j *job) Part()              { close(j.reports) }

// worker is the worker's end of a stream, which the test controls.
type worker struct {
	*testing.T
	to   chan *attach.FromWorker
	from chan *attach.ToWorker
	gone chan struct{}
	up   func() // hangs up
	over chan error
}

func (w *worker) Receive() (*attach.FromWorker, error) {
	select {
	case m := <-w.to:
		return m, nil
	case <-w.gone:
		return nil, errors.New("hung up")
	}
}

func (w *worker) Send(m *attach.ToWorker) error {
	select {
	case w.from <- m:
		return nil
	case <-w.gone:
		return errors.New("hung up")
	}
}

func (w *worker) HangUp() { w.up() }

func open(t *testing.T, o attached.Options) *attached.Sessions {
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Heartbeat == 0 {
		o.Heartbeat = time.Hour
	}
	s := attached.New(o)
	t.Cleanup(s.Close)
	return s
}

// attachTo starts a stream without sending anything.
func attachTo(t *testing.T, s *attached.Sessions) *worker {
	w := &worker{T: t, to: make(chan *attach.FromWorker), from: make(chan *attach.ToWorker),
		gone: make(chan struct{}), over: make(chan error, 1)}
	w.up = sync.OnceFunc(func() { close(w.gone) })
	go func() { w.over <- s.Serve(context.Background(), w) }()
	t.Cleanup(func() {
		w.up()
		<-w.over
	})
	return w
}

// dial attaches a worker, and returns the welcome.
func dial(t *testing.T, s *attached.Sessions, hello *attach.Hello) (*worker, *attach.ToWorker) {
	w := attachTo(t, s)
	hello.Protocol, hello.Worker = 1, "w"
	w.to <- &attach.FromWorker{Hello: hello}
	m := <-w.from
	require.NotNil(t, m.GetWelcome())
	return w, m
}

// hear reads the next message.
func (w *worker) hear() *attach.ToWorker {
	w.Helper()
	select {
	case m := <-w.from:
		return m
	case <-time.After(patience):
		require.FailNow(w, "nothing is told")
		return nil
	}
}

func hello(credits uint32, services ...string) *attach.Hello {
	return &attach.Hello{Credits: credits, Services: services}
}

func numbers(jobs []*attach.Job) (list []uint64) {
	for _, j := range jobs {
		list = append(list, j.GetNumber())
	}
	return list
}

func done(number uint64) *attach.Result {
	return &attach.Result{Number: number, Outcome: attach.Outcome_OUTCOME_COMPLETED, Output: []byte(`1`)}
}

func results(number uint64) *attach.FromWorker {
	return &attach.FromWorker{Results: []*attach.Result{done(number)}}
}

func TestAReturningWorkerResumesItsSession(t *testing.T) {
	s := open(t, attached.Options{Grace: time.Hour})
	w, m := dial(t, s, hello(10, "s"))
	jobs := []*job{newJob(0, "s"), newJob(1, "s"), newJob(2, "s"), newJob(3, "s"), newJob(4, "s")}
	for _, j := range jobs[:4] {
		s.Send([]actors.Passage{j})
		require.Len(t, w.hear().GetJobs(), 1)
	}
	w.up()
	<-w.over
	w.over <- nil
	s.CallOff(jobs[0]) // without a stream
	require.True(t, (<-jobs[0].reports).Lost)
	s.Send([]actors.Passage{jobs[4]}) // waits for the worker
	again := hello(10, "s")
	again.Session, again.Held, again.Finished = m.GetWelcome().GetSession(), []uint64{1, 2, 99}, []uint64{3}
	w, m = dial(t, s, again)
	require.True(t, m.GetWelcome().GetResumed())
	require.ElementsMatch(t, []uint64{1, 99}, m.GetCanceled())
	require.Equal(t, []uint64{4, 5}, numbers(m.GetJobs()), "what never arrived is sent again, and what has waited follows")
	w.to <- &attach.FromWorker{Results: []*attach.Result{done(2), done(3)}}
	require.Equal(t, []uint64{2, 3}, w.hear().GetAcknowledged())
	require.Equal(t, `1`, string((<-jobs[1].reports).Output))
	require.Equal(t, `1`, string((<-jobs[2].reports).Output))
	w.to <- &attach.FromWorker{Results: []*attach.Result{done(2)}}
	require.Equal(t, []uint64{2}, w.hear().GetAcknowledged(), "what is told twice is acknowledged twice")
	require.Empty(t, jobs[1].reports)
	require.Empty(t, jobs[3].reports)
}

func TestJobsReturnedByALeavingWorkerAreNotLost(t *testing.T) {
	s := open(t, attached.Options{})
	w, _ := dial(t, s, hello(2, "x"))
	j := newJob(1, "x")
	s.Send([]actors.Passage{j})
	number := numbers(w.hear().GetJobs())[0]
	w.to <- &attach.FromWorker{Leaving: true, Results: []*attach.Result{{Number: number, Outcome: attach.Outcome_OUTCOME_RETURNED}}}
	r := <-j.reports
	require.True(t, r.Lost)
	require.True(t, r.Unbegun, "nobody has begun with it")
}

func TestASilentWorkerLosesItsJobs(t *testing.T) {
	s := open(t, attached.Options{Grace: -1, Heartbeat: 10 * time.Millisecond})
	w, _ := dial(t, s, hello(1, "s"))
	first, second := newJob(1, "s"), newJob(2, "s")
	s.Send([]actors.Passage{first, second})
	go func() { // it reads, and sends nothing
		for {
			select {
			case <-w.from:
			case <-w.gone:
				return
			}
		}
	}()
	r := <-first.reports
	require.True(t, r.Lost)
	require.False(t, r.Unbegun, "it was sent")
	require.Equal(t, "no worker for service s", (<-second.reports).Error, "nobody is left for it")
}

func TestASilentWorkerIsNoticedWhileAMessageToItIsStuck(t *testing.T) {
	s := open(t, attached.Options{Grace: -1, Heartbeat: 10 * time.Millisecond})
	w, _ := dial(t, s, hello(1, "s"))
	j := newJob(1, "s")
	s.Send([]actors.Passage{j}) // nobody reads it
	require.True(t, (<-j.reports).Lost)
	<-w.gone
}

func TestAWorkerThatDoesNotReadIsDisconnected(t *testing.T) {
	s := open(t, attached.Options{})
	w, _ := dial(t, s, hello(1, "s"))
	many := &attach.FromWorker{}
	for n := range uint64(1000) {
		many.Results = append(many.Results, done(n))
	}
	for over := time.After(patience); ; {
		select {
		case w.to <- many:
		case <-w.gone:
			return
		case <-over:
			require.FailNow(t, "it may tell as much as it likes")
		}
	}
}

// roll is a list of workers.
type roll struct {
	mu     sync.Mutex
	joined int64
	gone   chan string
	listed func() error // called when a worker registers; may be nil
}

func (r *roll) Register(context.Context, persistence.Worker) error {
	r.join()
	if r.listed != nil {
		return r.listed()
	}
	return nil
}
func (r *roll) Heartbeat(context.Context, string, int) error { return nil }
func (r *roll) Awaited(*flow.Exec) bool                      { return false }
func (r *roll) Listed(*flow.Exec) bool                       { return false }
func (r *roll) Deregister(_ context.Context, id string) error {
	r.gone <- id
	return nil
}

func (r *roll) join() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined++
}

func (r *roll) Signs(string) flow.Signs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return flow.Signs{Joined: r.joined}
}

func TestAWorkerThatHasMovedToAnotherMemberStaysListed(t *testing.T) {
	for name, moved := range map[string]bool{"it has gone": false, "it has moved": true} {
		t.Run(name, func(t *testing.T) {
			r := &roll{gone: make(chan string, 10)}
			s := open(t, attached.Options{Grace: -1, Workers: r})
			w, _ := dial(t, s, hello(1, "s"))
			if moved {
				r.join() // at another member
			}
			w.up()
			require.NoError(t, <-w.over)
			w.over <- nil
			require.Equal(t, !moved, len(r.gone) == 1)
		})
	}
}

func TestAJobWaitsForAListedWorkerWithoutASession(t *testing.T) {
	for name, refused := range map[string]error{"it comes": nil, "it does not": errors.New("the store is away")} {
		t.Run(name, func(t *testing.T) {
			r, j, other := &roll{gone: make(chan string, 10)}, newJob(1, "s", "x"), newJob(2, "s", "y")
			s := open(t, attached.Options{Grace: -1, Patience: time.Nanosecond, Workers: r})
			var offered []bool
			r.listed = func() error {
				offered = []bool{s.Offers(j.Job().Exec), s.Offers(other.Job().Exec)}
				s.Send([]actors.Passage{j, other})
				return refused
			}
			w := attachTo(t, s)
			w.to <- &attach.FromWorker{Hello: &attach.Hello{Protocol: 1, Worker: "w", Credits: 1,
				Services: []string{"s"}, Labels: []string{"x"}}}
			require.Contains(t, (<-other.reports).Error, "no worker for service s with the labels y")
			require.Equal(t, []bool{true, false}, offered)
			if refused != nil {
				require.Contains(t, (<-j.reports).Error, "no worker for service s with the labels x")
				return
			}
			m := w.hear()
			require.NotNil(t, m.GetWelcome())
			require.Len(t, m.GetJobs(), 1)
		})
	}
}

func TestAWorkerThatDoesNotReadDelaysNoOther(t *testing.T) {
	s := open(t, attached.Options{})
	dial(t, s, hello(100, "s"))
	quick, _ := dial(t, s, hello(1, "other"))
	for n := range 100 {
		s.Send([]actors.Passage{newJob(n, "s")})
	}
	for n := range 100 {
		j := newJob(n, "other")
		s.Send([]actors.Passage{j})
		for given := 0; given == 0; {
			m := quick.hear()
			if given = len(m.GetJobs()); given > 0 {
				quick.to <- &attach.FromWorker{Results: []*attach.Result{done(m.GetJobs()[0].GetNumber())}}
			}
		}
		<-j.reports
	}
}

func TestACanceledJobUsesItsCreditUntilItsWorkerAnswers(t *testing.T) {
	s := open(t, attached.Options{})
	w, _ := dial(t, s, hello(1, "s"))
	first, second := newJob(1, "s"), newJob(2, "s")
	s.Send([]actors.Passage{first, second})
	require.Equal(t, []uint64{1}, numbers(w.hear().GetJobs()))
	s.CallOff(first)
	m := w.hear()
	require.Equal(t, []uint64{1}, m.GetCanceled())
	require.Empty(t, m.GetJobs())
	w.to <- &attach.FromWorker{Results: []*attach.Result{{Number: 1, Outcome: attach.Outcome_OUTCOME_CANCELED}}}
	require.Equal(t, []uint64{2}, numbers(w.hear().GetJobs()))
}

func TestJobsGoToTheWorkerWithTheMostFreeCredits(t *testing.T) {
	s := open(t, attached.Options{})
	large, _ := dial(t, s, hello(3, "s"))
	small, _ := dial(t, s, hello(1, "s"))
	for n := range 2 {
		s.Send([]actors.Passage{newJob(n, "s")})
		require.Len(t, large.hear().GetJobs(), 1)
	}
	s.Send([]actors.Passage{newJob(2, "s"), newJob(3, "s")})
	require.Len(t, large.hear().GetJobs(), 1)
	require.Len(t, small.hear().GetJobs(), 1)
}

func TestWithdrawnWaitingJobsDoNotPileUp(t *testing.T) {
	s := open(t, attached.Options{})
	w, _ := dial(t, s, hello(1, "s"))
	s.Send([]actors.Passage{newJob(0, "s")})
	require.Len(t, w.hear().GetJobs(), 1)
	var waiting []*job
	for n := range 1000 {
		waiting = append(waiting, newJob(n, "s"))
		s.Send([]actors.Passage{waiting[n]})
	}
	for _, j := range waiting[:900] {
		j.over = true
		s.CallOff(j)
	}
	left := 0
	for _, j := range waiting[:900] {
		if len(j.reports) == 0 {
			left++
		}
	}
	require.Less(t, left, 200, "they are let go of")
	w.to <- &attach.FromWorker{Results: []*attach.Result{done(1)}}
	for m := w.hear(); ; m = w.hear() {
		if len(m.GetJobs()) > 0 {
			require.Equal(t, waiting[900].Job().Task, m.GetJobs()[0].GetTask())
			return
		}
	}
}

func TestInvalidHellosAreRefused(t *testing.T) {
	s := open(t, attached.Options{})
	for what, tt := range map[string]struct {
		first *attach.FromWorker
		want  string
	}{
		"no hello": {&attach.FromWorker{}, "begins with a hello"},
		"no credits": {&attach.FromWorker{Hello: &attach.Hello{Protocol: 1, Worker: "w",
			Services: []string{"s"}}}, "credits must be 1 to 10000, are 0"},
		"no service": {&attach.FromWorker{Hello: &attach.Hello{Protocol: 1, Worker: "w",
			Credits: 1}}, "name its services"},
		"a new version": {&attach.FromWorker{Hello: &attach.Hello{Protocol: 2, Worker: "w",
			Credits: 1, Services: []string{"s"}}}, "speaks version 2"},
	} {
		t.Run(what, func(t *testing.T) {
			w := &worker{T: t, to: make(chan *attach.FromWorker, 1), gone: make(chan struct{}), up: func() {}}
			w.to <- tt.first
			err := s.Serve(t.Context(), w)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
		})
	}
}
