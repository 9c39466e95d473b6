package attached_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// early is a worker that brings more results to another member than that one keeps before their
// jobs are settled.
type early struct {
	*worker
	session string
	jobs    []*job // as they are sent to that member
	all     []*attach.Result
}

// kept is how many of them the member keeps.
const kept = 8

// newEarly attaches with its results. After known is closed, the tasks answer with err, or accept
// the member as the carrier.
func newEarly(t *testing.T, err error) (s *attached.Sessions, e *early, known chan struct{}) {
	s, known = open(t, attached.Options{Secret: "s", Grace: time.Hour}), make(chan struct{})
	s.Roam(func(_ context.Context, jobs engine.Orders) engine.Outcomes {
		outcomes := make(engine.Outcomes, len(jobs))
		for i := range outcomes {
			select {
			case <-known:
				outcomes[i] = engine.Outcome{Given: 1, Err: err}
			default:
				outcomes[i].Err = flow.Errorf(flow.Busy, "the owner of the task is away")
			}
		}
		return outcomes
	})
	e = &early{}
	h := hello(kept+2, "s")
	large := make([]byte, 8<<20)
	for n, j := range given(t, kept+2) {
		h.Brought = append(h.Brought, &attach.Brought{Number: j.GetNumber(), Id: j.GetId(), Ticket: j.GetTicket()})
		h.Finished = append(h.Finished, j.GetNumber())
		e.all = append(e.all, &attach.Result{Number: j.GetNumber(), Outcome: attach.Outcome_OUTCOME_COMPLETED, Output: large})
		e.jobs = append(e.jobs, newJob(n, "s"))
		e.jobs[n].given = 1
	}
	w, m := dial(t, s, h)
	require.True(t, m.GetWelcome().GetResumed())
	e.worker, e.session = w, m.GetWelcome().GetSession()
	for _, r := range e.all {
		e.to <- &attach.FromWorker{Results: []*attach.Result{r}}
	}
	e.to <- &attach.FromWorker{} // when it is received, the results are, too
	return s, e, known
}

// given returns jobs that a worker has from another member.
func given(t *testing.T, n int) (list []*attach.Job) {
	s := open(t, attached.Options{Secret: "s", Grace: time.Hour})
	s.Roam(func(context.Context, engine.Orders) engine.Outcomes { return nil })
	w, _ := dial(t, s, hello(uint32(n), "s"))
	for i := range n {
		s.Send([]actors.Passage{newJob(i, "s")})
	}
	for len(list) < n {
		list = append(list, w.hear().GetJobs()...)
	}
	return list
}

func TestEarlyResultsThatWereDroppedAreSentAgain(t *testing.T) {
	s, e, known := newEarly(t, nil)
	for _, j := range e.jobs {
		s.Send([]actors.Passage{j})
	}
	close(known)
	for _, j := range e.jobs[:kept] {
		require.Len(t, (<-j.reports).Output, 8<<20)
	}
	<-e.gone // it must come again
	require.Empty(t, e.jobs[kept].reports)
	again := hello(kept+2, "s")
	again.Session = e.session
	for _, r := range e.all[kept:] {
		again.Finished = append(again.Finished, r.GetNumber())
	}
	w, m := dial(t, s, again)
	require.True(t, m.GetWelcome().GetResumed())
	w.to <- &attach.FromWorker{Results: e.all[kept:]}
	for _, j := range e.jobs[kept:] {
		require.Len(t, (<-j.reports).Output, 8<<20)
	}
}

func TestUnneededResultsAreAcknowledgedEvenIfDropped(t *testing.T) {
	_, e, known := newEarly(t, flow.Errorf(flow.Conflict, "another worker has the job by now"))
	close(known)
	acknowledged := 0
	for acknowledged < len(e.all) {
		acknowledged += len(e.hear().GetAcknowledged())
	}
	require.Len(t, e.all, acknowledged)
}

// TestABroughtJobWithdrawnMeanwhileIsRequestedAgain: another member, at which the worker
// was meanwhile, has the job for a moment.
func TestABroughtJobWithdrawnMeanwhileIsRequestedAgain(t *testing.T) {
	asked := make(chan int, 2)
	asked <- 1
	asked <- 3
	s := open(t, attached.Options{Secret: "s", Grace: time.Hour})
	s.Roam(func(context.Context, engine.Orders) engine.Outcomes { return engine.Outcomes{{Given: <-asked}} })
	had := given(t, 1)[0]
	h := hello(2, "s")
	h.Held = []uint64{had.GetNumber()}
	h.Brought = []*attach.Brought{{Number: had.GetNumber(), Id: had.GetId(), Ticket: had.GetTicket()}}
	w, _ := dial(t, s, h)
	withdrawn, again := newJob(0, "s"), newJob(0, "s")
	withdrawn.given, withdrawn.over, again.given = 1, true, 3
	s.Send([]actors.Passage{withdrawn})
	require.Eventually(t, func() bool { return len(asked) == 0 }, 10*time.Second, time.Millisecond)
	s.Send([]actors.Passage{again})
	w.to <- &attach.FromWorker{Results: []*attach.Result{{Number: had.GetNumber(),
		Outcome: attach.Outcome_OUTCOME_COMPLETED, Output: []byte("1")}}}
	require.Equal(t, "1", string((<-again.reports).Output))
	for m := w.hear(); len(m.GetAcknowledged()) == 0; m = w.hear() {
		require.Empty(t, m.GetCanceled())
	}
}

// TestAWaitingJobDoesNotStartAgainWhenItsWorkerReturns: the worker was lost, the job waits for
// another one, and then the first one is back.
func TestAWaitingJobDoesNotStartAgainWhenItsWorkerReturns(t *testing.T) {
	known := make(chan struct{})
	know := sync.OnceFunc(func() { close(known) })
	s := open(t, attached.Options{Secret: "s", Grace: time.Hour})
	t.Cleanup(know) // before the sessions are closed, which wait for the task's answer
	s.Roam(func(context.Context, engine.Orders) engine.Outcomes {
		<-known
		return engine.Outcomes{{Err: flow.Errorf(flow.Conflict, "another worker has the job by now")}}
	})
	busy, _ := dial(t, s, hello(1, "s"))
	s.Send([]actors.Passage{newJob(1, "s")})
	require.Len(t, busy.hear().GetJobs(), 1)
	waits := newJob(0, "s")
	waits.given = 2
	s.Send([]actors.Passage{waits})

	had := given(t, 1)[0]
	h := hello(2, "s")
	h.Held = []uint64{had.GetNumber()}
	h.Brought = []*attach.Brought{{Number: had.GetNumber(), Id: had.GetId(), Ticket: had.GetTicket()}}
	w, m := dial(t, s, h)
	require.Empty(t, m.GetJobs())
	know()
	m = w.hear()
	require.Equal(t, []uint64{had.GetNumber()}, m.GetCanceled(), "before it gets the job anew")
	for len(m.GetJobs()) == 0 {
		m = w.hear()
	}
	require.Equal(t, had.GetId(), m.GetJobs()[0].GetId())
}

// TestAJobWithdrawnBeforeItsResendBlocksNoOther: its worker had brought it, and is
// back without it.
func TestAJobWithdrawnBeforeItsResendBlocksNoOther(t *testing.T) {
	s := open(t, attached.Options{Secret: "s", Grace: time.Hour})
	var away atomic.Bool
	s.Roam(func(_ context.Context, jobs engine.Orders) engine.Outcomes {
		outcomes := make(engine.Outcomes, len(jobs))
		for i := range outcomes {
			if outcomes[i].Given = 1; away.Load() {
				outcomes[i].Err = flow.Errorf(flow.Busy, "the owner of the task is away")
			}
		}
		return outcomes
	})
	h := hello(10, "s")
	begun := make(chan struct{}, 10)
	var jobs []*job
	for n, had := range given(t, 2) {
		h.Held = append(h.Held, had.GetNumber())
		h.Brought = append(h.Brought, &attach.Brought{Number: had.GetNumber(), Id: had.GetId(), Ticket: had.GetTicket()})
		jobs = append(jobs, newJob(n, "s"))
		// one of them fills a message
		jobs[n].given, jobs[n].input, jobs[n].begun = 1, make([]byte, 1<<20), begun
	}
	w, m := dial(t, s, h)
	s.Send([]actors.Passage{jobs[0], jobs[1]})
	<-begun
	<-begun
	w.up()
	require.NoError(t, <-w.over)
	w.over <- nil
	again := hello(10, "s")
	again.Session = m.GetWelcome().GetSession()
	again.Protocol, again.Worker = 1, "w"
	away.Store(true)
	w = attachTo(t, s)
	w.to <- &attach.FromWorker{Hello: again}
	w.to <- &attach.FromWorker{} // when it is received, the session has resumed
	s.CallOff(jobs[1])
	require.True(t, (<-jobs[1].reports).Lost)
	require.Len(t, w.hear().GetJobs(), 1)
	anew := newJob(1, "s")
	anew.given = 2
	s.Send([]actors.Passage{anew})
	require.Len(t, w.hear().GetJobs(), 1)
	require.Empty(t, anew.reports)
}

// TestAResultWithoutATicketBelongsToNoOtherJob: a new job gets a number that the worker has for no
// result.
func TestAResultWithoutATicketBelongsToNoOtherJob(t *testing.T) {
	s := open(t, attached.Options{Secret: "s", Grace: time.Hour})
	s.Roam(func(_ context.Context, jobs engine.Orders) engine.Outcomes { return make(engine.Outcomes, len(jobs)) })
	had := given(t, 2)
	h := hello(2, "s")
	h.Finished = []uint64{had[0].GetNumber(), had[1].GetNumber()}
	h.Brought = []*attach.Brought{{Number: had[0].GetNumber(), Id: had[0].GetId(), Ticket: had[0].GetTicket()},
		{Number: had[1].GetNumber(), Id: had[1].GetId(), Ticket: []byte("not the ticket of the job")}}
	w, m := dial(t, s, h)
	require.True(t, m.GetWelcome().GetResumed())
	fresh := newJob(7, "s")
	s.Send([]actors.Passage{fresh})
	for len(m.GetJobs()) == 0 {
		m = w.hear()
	}
	require.Greater(t, m.GetJobs()[0].GetNumber(), had[1].GetNumber())
}

// TestAJobToStopUsesACreditUntilItsWorkerHasAnswered: the worker brought a refused job, or
// is back with a job that the session does not know.
func TestAJobToStopUsesACreditUntilItsWorkerHasAnswered(t *testing.T) {
	for name, come := range map[string]func(s *attached.Sessions) *worker{
		"without its ticket": func(s *attached.Sessions) *worker {
			had := given(t, 2)
			h := hello(2, "s")
			h.Held = []uint64{had[0].GetNumber(), had[1].GetNumber()}
			h.Brought = []*attach.Brought{{Number: had[0].GetNumber(), Id: had[0].GetId(), Ticket: had[0].GetTicket()},
				{Number: had[1].GetNumber(), Id: had[1].GetId(), Ticket: []byte("not the ticket of the job")}}
			w, m := dial(t, s, h)
			require.True(t, m.GetWelcome().GetResumed())
			return w.told(m, 2)
		},
		"to a session that does not know it": func(s *attached.Sessions) *worker {
			w, m := dial(t, s, hello(1, "s"))
			w.up()
			h := hello(1, "s")
			h.Session, h.Held = m.GetWelcome().GetSession(), []uint64{2}
			w, m = dial(t, s, h)
			require.True(t, m.GetWelcome().GetResumed())
			return w.told(m, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, attached.Options{Secret: "s", Grace: time.Hour})
			s.Roam(func(_ context.Context, jobs engine.Orders) engine.Outcomes { return make(engine.Outcomes, len(jobs)) })
			w := come(s)
			waits := newJob(7, "s")
			s.Send([]actors.Passage{waits})
			w.to <- &attach.FromWorker{Results: []*attach.Result{{Number: 2, Outcome: attach.Outcome_OUTCOME_CANCELED}}}
			m := w.hear()
			require.Equal(t, []uint64{2}, m.GetAcknowledged(), "before it gets another job")
			for len(m.GetJobs()) == 0 {
				m = w.hear()
			}
		})
	}
}

// told reads until the worker gets a cancellation.
func (w *worker) told(m *attach.ToWorker, number uint64) *worker {
	for len(m.GetCanceled()) == 0 {
		require.Empty(w, m.GetJobs())
		m = w.hear()
	}
	require.Equal(w, []uint64{number}, m.GetCanceled())
	return w
}
