package attached_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

var remote = &flow.Exec{Type: flow.ExecRemote, Service: "s"}

// beside opens sessions with one other member, and returns their announcements.
func beside(t *testing.T) (*attached.Sessions, chan *engine.Credits) {
	s, told := open(t, attached.Options{Grace: -1}), make(chan *engine.Credits, 1000)
	s.Meet("me", func() []string { return []string{"other"} }, func(c *engine.Credits) { told <- c })
	return s, told
}

// credited returns an announcement of the other member.
func credited(turn int64, free int, labels ...string) *engine.Credits {
	return &engine.Credits{Member: "other", Turn: turn,
		List: []engine.Credit{{Services: []string{"s"}, Labels: labels, Workers: 1, Free: free}}}
}

func foreign(n int, at int64) *job {
	j := newJob(n, "s")
	j.foreign, j.at = true, at
	return j
}

// free waits until the given number of credits is announced.
func free(t *testing.T, told chan *engine.Credits, want int) {
	t.Helper()
	for over := time.After(patience); ; {
		select {
		case c := <-told:
			for _, credit := range c.List {
				if credit.Workers > 0 && credit.Free == want {
					return
				}
			}
		case <-over:
			require.FailNow(t, "nobody is told of it")
		}
	}
}

func TestAJobGoesToAnotherMemberWhenNoWorkerHereIsFree(t *testing.T) {
	s, _ := beside(t)
	s.Credited(credited(1, 2, "gpu"))
	w, _ := dial(t, s, hello(1, "s"))
	jobs := []*job{newJob(0, "s"), newJob(1, "s"), newJob(2, "s"), newJob(3, "s", "gpu"), newJob(4, "s", "fpga")}
	for _, j := range jobs {
		s.Send([]actors.Passage{j})
	}
	require.Len(t, w.hear().GetJobs(), 1, "its own workers come first")
	pass := flow.Report{Lost: true, Unbegun: true, To: "other"}
	require.Equal(t, pass, <-jobs[1].reports)
	require.Equal(t, pass, <-jobs[2].reports)
	require.Equal(t, "no worker for service s with the labels fpga", (<-jobs[4].reports).Error)
	require.Empty(t, jobs[3].reports, "it waits for a credit")
	s.Credited(credited(1, 2, "gpu"))
	require.Never(t, func() bool { return len(jobs[3].reports) > 0 }, 20*time.Millisecond, time.Millisecond, "that is old")
	s.Credited(credited(2, 1, "gpu"))
	require.Equal(t, pass, <-jobs[3].reports)
}

func TestAReservedCreditThatIsNotUsedIsFreeAgain(t *testing.T) {
	s, _ := beside(t)
	s.Credited(credited(1, 1))
	first, second := newJob(0, "s"), newJob(1, "s")
	s.Send([]actors.Passage{first, second})
	require.Equal(t, "other", (<-first.reports).To)
	require.Equal(t, "other", (<-second.reports).To, "whatever became of the first one")
}

func TestJobsForAMemberThatIsGoneFail(t *testing.T) {
	for name, end := range map[string]func(*attached.Sessions){
		"the member":  func(s *attached.Sessions) { s.Gone("other") },
		"its workers": func(s *attached.Sessions) { s.Credited(&engine.Credits{Member: "other", Turn: 2, Whole: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := beside(t)
			s.Credited(credited(1, 0))
			mine, theirs := newJob(0, "s"), foreign(1, 0)
			s.Send([]actors.Passage{mine, theirs})
			require.Empty(t, mine.reports)
			end(s)
			require.Equal(t, "no worker for service s", (<-mine.reports).Error)
			require.Equal(t, flow.Report{Lost: true, Unbegun: true}, <-theirs.reports, "who has its task may know somebody")
			require.False(t, s.Offers(remote))
		})
	}
}

func TestCreditChangesAreAnnounced(t *testing.T) {
	s, told := beside(t)
	w, _ := dial(t, s, hello(2, "s"))
	free(t, told, 2)
	s.Send([]actors.Passage{foreign(0, 0)})
	require.Len(t, w.hear().GetJobs(), 1)
	free(t, told, 1)
	w.to <- results(1)
	free(t, told, 2)
	s.Leave()
	for c := range told {
		if len(c.List) == 1 && c.List[0].Workers == 0 {
			return
		}
	}
}

func TestTheOldestJobGetsAFreeCredit(t *testing.T) {
	s, _ := beside(t)
	w, _ := dial(t, s, hello(1, "s"))
	s.Send([]actors.Passage{newJob(0, "s")})
	require.Len(t, w.hear().GetJobs(), 1)
	mine := newJob(1, "s")
	mine.at = 10
	s.Send([]actors.Passage{mine, foreign(2, 5), foreign(3, 20)})
	for i, task := range []string{"t2", "t1", "t3"} {
		w.to <- results(uint64(i + 1))
		m := w.hear()
		for len(m.GetJobs()) == 0 {
			m = w.hear()
		}
		require.Equal(t, task, m.GetJobs()[0].GetTask())
	}
}

func TestALeavingMemberReturnsQueuedJobsOfOtherMembers(t *testing.T) {
	s, _ := beside(t)
	w, _ := dial(t, s, hello(1, "s"))
	s.Send([]actors.Passage{newJob(0, "s")})
	require.Len(t, w.hear().GetJobs(), 1)
	mine, theirs := newJob(1, "s"), foreign(2, 0)
	s.Send([]actors.Passage{mine, theirs})
	s.Leave()
	require.Equal(t, flow.Report{Lost: true, Unbegun: true}, <-theirs.reports)
	require.Empty(t, mine.reports, "who comes back has it")
	s.Credited(credited(1, 1))
	require.Equal(t, "other", (<-mine.reports).To, "or whoever is there")
}

// listing has a worker that is listed as attached to some member.
type listing struct{ *roll }

func (listing) Listed(*flow.Exec) bool { return true }

func TestOnlyJobsForAttachedWorkersWaitForAListedOne(t *testing.T) {
	s := open(t, attached.Options{Grace: -1, Workers: listing{&roll{}}, Patience: time.Nanosecond})
	s.Meet("me", func() []string { return []string{"other"} }, func(*engine.Credits) {})
	s.Credited(credited(1, 0))
	push, only := newJob(0, "s"), newJob(1, "s")
	push.kind = flow.ExecPush
	s.Send([]actors.Passage{push, only})
	s.Credited(&engine.Credits{Member: "other", Turn: 2, Whole: true})
	require.Equal(t, flow.Report{Lost: true, Unbegun: true}, <-push.reports)
	require.Empty(t, only.reports)
	s.Credited(credited(3, 1))
	require.Equal(t, "other", (<-only.reports).To)
}
