package actors_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAWorkersJobsContinueWhenItsMemberIsKilled(t *testing.T) {
	for name, finish := range map[string]string{"it is still at them": "later", "it has finished them meanwhile": "before"} {
		t.Run(name, func(t *testing.T) {
			r, w := newRealm(t, time.Hour), newRoamer(t)
			w.come(r.sessions[0])
			awaitOffer(t, r.sessions...)
			ids := r.begin(t, 30)
			w.has(len(ids))
			w.part()
			if finish == "before" {
				w.finishAll()
			}
			r.kill(t, 0)
			require.True(t, w.come(r.sessions[1]).GetResumed())
			if finish == "later" {
				w.finishAll()
			}
			r.allEnd(t, ids)
			w.has(0)
			w.onceEach()
			for _, id := range ids {
				require.NotContains(t, r.history(t, id), "attempt_requeued ")
				require.Contains(t, r.history(t, id), "attempt_moved roamer")
			}
		})
	}
}

func TestAWorkersJobsContinueAtAMemberNotYetKnown(t *testing.T) {
	r, w := newRealm(t, time.Hour), newRoamer(t)
	ids := r.holds(t, w, remoteJob)
	r.handOver(t, 0, 2)
	r.handOver(t, 1, 2)
	asked := make(chan struct{})
	r.lines[r.members[1]].after = func(o engine.Order) {
		if _, is := o.Command.(flow.Bring); is && !host.Closed(asked) {
			close(asked)
		}
	}
	w.part()
	r.die(t, r.members[0])
	r.hide(r.members[1].Incarnation())
	require.True(t, w.come(r.sessions[1]).GetResumed())
	<-asked
	for _, id := range ids {
		require.Zero(t, r.moves(t, id), "its owner would take it for lost")
	}
	r.gone(0, false)
	r.hide("")
	r.moved(t, ids, 1)
	w.finishAll()
	r.allEnd(t, ids)
	w.onceEach()
	for _, id := range ids {
		require.NotContains(t, r.history(t, id), "attempt_requeued ")
	}
}

func TestAWorkersJobsContinueWhenOnlyTheStreamBreaks(t *testing.T) {
	r, w := newRealm(t, time.Hour), newRoamer(t)
	w.come(r.sessions[0])
	awaitOffer(t, r.sessions...)
	ids := r.begin(t, 30)
	w.has(len(ids))
	for moves, at := range []int{1, 2, 1, 0, 2} {
		w.come(r.sessions[at])
		r.moved(t, ids, moves+1)
		w.come(r.sessions[at]) // here its session is known
	}
	w.finishAll()
	r.allEnd(t, ids)
	w.has(0)
	w.onceEach()
}

func TestAWorkersJobsContinueWhenItsMemberLeaves(t *testing.T) {
	for name, job := range jobsToBring {
		t.Run(name, func(t *testing.T) {
			r, w := newRealm(t, time.Hour), newRoamer(t)
			ids := r.holds(t, w, job)
			r.sessions[0].Leave()
			r.handOver(t, 0, 2)
			w.come(r.sessions[1])
			require.NoError(t, r.members[0].Stop(t.Context()), "it waits for nothing that goes on elsewhere")
			r.gone(0, true)
			w.finishAll()
			r.allEnd(t, ids)
			w.onceEach()
		})
	}
}

func TestAWorkerKeepsItsJobsWhenItsMemberLeaves(t *testing.T) {
	for name, job := range jobsToBring {
		for _, moved := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", tasks moved before: ", moved), func(t *testing.T) {
				r, w := newRealm(t, time.Hour), newRoamer(t)
				ids := r.holds(t, w, job)
				if moved {
					r.handOver(t, 0, 2)
				}
				// how long it waits for its jobs
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				require.NoError(t, r.members[0].Stop(ctx))
				r.gone(0, true)
				w.come(r.sessions[1])
				w.finishAll()
				r.allEnd(t, ids)
				w.onceEach()
			})
		}
	}
}

func TestALateWithdrawalDoesNotCancelANewerDelivery(t *testing.T) {
	r, w := newRealm(t, time.Hour), newRoamer(t)
	ids := r.holds(t, w, remoteJob)
	for moves, at := range []int{1, 0} {
		w.come(r.sessions[at])
		r.moved(t, ids, moves+1)
	}
	var late engine.Errands
	for _, id := range ids {
		late = append(late, engine.Errand{Job: engine.Job{Task: id,
			Address: flow.Address{Node: "a", Visit: 1, Attempt: 1}}, Withdrawn: true})
	}
	require.NoError(t, r.members[0].Carry(t.Context(), late))
	w.finishAll()
	r.allEnd(t, ids)
	w.onceEach()
}

func TestAnUnnoticedDepartureDoesNotMoveJobsBackRepeatedly(t *testing.T) {
	r, w := newRealm(t, time.Hour), newRoamer(t)
	ids := r.holds(t, w, remoteJob)
	w.come(r.sessions[1])
	r.moved(t, ids, 1)
	w.slip()
	w.come(r.sessions[2])
	for _, id := range ids {
		require.Eventually(t, func() bool { return r.moves(t, id) >= 2 }, patience, time.Millisecond)
	}
	require.Never(t, func() bool { return r.moves(t, ids[0]) > 6 }, 300*time.Millisecond, 10*time.Millisecond)
	w.finishAll()
	for _, id := range ids {
		require.Eventually(t, func() bool {
			w.say()
			return r.status(t, id) == flow.TaskCompleted
		}, patience, 10*time.Millisecond)
	}
	w.onceEach()
}

func TestOtherWorkersGetTheJobsOfALateOne(t *testing.T) {
	r, w, other := newRealm(t, 50*time.Millisecond), newRoamer(t), newRoamer(t)
	w.come(r.sessions[0])
	awaitOffer(t, r.sessions...)
	ids := r.begin(t, 20)
	w.has(len(ids))
	w.part()
	done := w.half()
	other.come(r.sessions[2])
	awaitOffer(t, r.sessions[1:]...)
	r.kill(t, 0)
	other.has(len(ids))
	require.True(t, w.come(r.sessions[1]).GetResumed())
	w.has(0)
	require.Len(t, w.stopped, len(ids)-done, "what it was still at is canceled")
	for _, id := range ids {
		require.Equal(t, flow.TaskRunning, r.status(t, id), "what it has finished counts no longer")
	}
	other.finishAll()
	r.allEnd(t, ids)
}

func TestWithoutAGracePeriodJobsGoToOthersAtOnce(t *testing.T) {
	r, w, other := newRealm(t, -1), newRoamer(t), newRoamer(t)
	w.come(r.sessions[0])
	awaitOffer(t, r.sessions...)
	ids := r.begin(t, 20)
	w.has(len(ids))
	other.come(r.sessions[0])
	w.part()
	other.has(len(ids))
	require.False(t, w.come(r.sessions[1]).GetResumed())
	other.finishAll()
	r.allEnd(t, ids)
}

func TestAJobIsNotBroughtWithAWrongTicket(t *testing.T) {
	for name, forge := range map[string]func(a, b *attach.Job){
		"none":                       func(a, _ *attach.Job) { a.Ticket = nil },
		"another job's":              func(a, b *attach.Job) { a.Ticket = b.GetTicket() },
		"of another giving":          func(a, _ *attach.Job) { a.Ticket[16]++ },
		"of another time":            func(a, _ *attach.Job) { a.Ticket[17]++ },
		"cut short":                  func(a, _ *attach.Job) { a.Ticket = a.GetTicket()[:5] },
		"for a job that is no one's": func(a, _ *attach.Job) { a.Id += "0" },
	} {
		t.Run(name, func(t *testing.T) {
			r, w := newRealm(t, time.Hour), newRoamer(t)
			w.come(r.sessions[0])
			awaitOffer(t, r.sessions...)
			ids := r.begin(t, 3)
			w.has(len(ids))
			w.part()
			var jobs []*attach.Job
			for _, j := range w.jobs {
				jobs = append(jobs, j)
			}
			right := jobs[0].GetId()
			forge(jobs[0], jobs[1])
			w.come(r.sessions[1])
			w.has(len(ids) - 1)
			require.Equal(t, map[string]bool{jobs[0].GetId(): true}, w.stopped)
			task, _, err := flow.ParseJobID(right)
			require.NoError(t, err)
			require.NotContains(t, r.history(t, task), "attempt_moved roamer")
			w.finishAll()
			for _, id := range ids {
				if id != task {
					require.Equal(t, flow.TaskCompleted, r.ended(t, id).State.Status)
				}
			}
			require.Equal(t, flow.TaskRunning, r.status(t, task))
		})
	}
}

func TestARestartedMemberContinuesTheJobsOfItsWorkers(t *testing.T) {
	for name, end := range map[string]func(*harness) error{
		"after a crash": func(th *harness) error { th.Kill(); return nil },
		"in order": func(th *harness) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			return th.Stop(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newLeaping()
			w := newRoamer(t)
			cfg, s := roaming(t, time.Hour)
			cfg.Store = store
			th := start(t, cfg)
			w.come(s)
			version := th.publish(t, remoteJob)
			var ids []string
			for range 10 {
				ids = append(ids, th.begin(t, version, `{}`))
			}
			w.has(len(ids))
			require.NoError(t, end(th))
			cfg, s = roaming(t, time.Hour)
			cfg.Store = store
			th = start(t, cfg)
			require.True(t, w.come(s).GetResumed())
			w.finishAll()
			for _, id := range ids {
				require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
			}
			w.onceEach()
		})
	}
}

func TestACancelReachesABroughtJob(t *testing.T) {
	r, w := newRealm(t, time.Hour), newRoamer(t)
	w.come(r.sessions[0])
	awaitOffer(t, r.sessions...)
	ids := r.begin(t, 9)
	w.has(len(ids))
	w.come(r.sessions[1])
	for _, id := range ids {
		_, err := r.at(persistence.ShardOf(id)).DoAll(t.Context(), engine.Orders{{Task: id, Command: flow.Cancel{Force: true}}})
		require.NoError(t, err)
	}
	w.has(0)
	require.Len(t, w.stopped, len(ids), fmt.Sprint(w.stopped))
}
