package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// errand is a task with one job, and can run commands of any member.
type errand struct {
	*testing.T
	state *flow.State
	now   int64
}

var jobAt = flow.Address{Node: "a", Visit: 1, Attempt: 1}

var who = map[bool]string{true: `"func"`, false: `"service"`}

func newErrand(t *testing.T, execType string) *errand {
	e := &errand{T: t, now: 1_000, state: flow.NewState("t",
		flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"`+execType+`",`+
			who[execType == "local_func"]+`:"s"}}}`))}
	e.do("m", flow.Start{Version: "v"})
	return e
}

func (e *errand) do(member string, c flow.Command) flow.Decision {
	d, err := flow.Decide(e.state, c, flow.Env{Now: e.now, Member: member})
	require.NoError(e, err)
	return d
}

func (e *errand) refused(c flow.Command) string {
	d, err := flow.Decide(e.state, c, flow.Env{Now: e.now, Member: "m"})
	require.Empty(e, d.Events)
	require.Empty(e, d.Effects)
	return string(flow.ErrorKindOf(err))
}

func brought(to string, given int) flow.Bring {
	return flow.Bring{Address: jobAt, Carrier: to, Worker: "w", Given: given, Since: 1_000}
}

func TestAJobStaysWithAWorkerThatChangesMembers(t *testing.T) {
	e := newErrand(t, "remote")
	d := e.do("m", brought("n", 0))
	require.Len(t, d.Events, 1)
	require.Equal(t, []any{flow.AttemptMoved, "n", "w"}, []any{d.Events[0].Type, d.Events[0].Carrier, d.Events[0].Worker})
	require.Equal(t, flow.Withdraw{Address: jobAt, Carrier: "m"}, d.Effects[0], "where it was nobody waits for it any longer")
	jobs := dispatched(d.Effects)
	require.Len(t, jobs, 1)
	require.Equal(t, []any{"n", 1, 0, false}, []any{jobs[0].Carrier, jobs[0].Given, jobs[0].Deliveries, jobs[0].Again})

	require.Empty(t, e.do("m", brought("n", 0)).Effects, "the same again changes nothing")
	require.Empty(t, e.do("m", flow.Report{Address: jobAt, Lost: true}).Effects, "who had it before has no say")
	require.Equal(t, "k", dispatched(e.do("m", brought("k", 0)).Effects)[0].Carrier, "the worker knows of no other giving")
	require.Empty(t, e.do("m", brought("k", 0)).Events, "it is there already")
	e.do("m", flow.Report{Address: jobAt, Output: []byte(`1`)})
	require.Equal(t, flow.TaskCompleted, e.state.Status)
	require.Equal(t, "conflict", e.refused(brought("n", 0)))
}

func TestARedeliveredJobCannotBeBrought(t *testing.T) {
	for name, given := range map[string]flow.Command{
		"lost":     flow.Report{Address: jobAt, Lost: true},
		"returned": flow.Report{Address: jobAt, Lost: true, Unbegun: true},
		"passed":   flow.Report{Address: jobAt, Lost: true, Unbegun: true, To: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newErrand(t, "remote")
			e.do("m", given)
			require.Equal(t, "conflict", e.refused(brought("n", 0)))
			require.Equal(t, "conflict", e.refused(brought("n", 7)))
			e.do("m", brought("n", 1))
		})
	}
	e := newErrand(t, "remote")
	e.do("m", brought("n", 0))
	e.do("m", flow.Report{Address: jobAt, Lost: true, Given: 1})
	require.Equal(t, "conflict", e.refused(brought("k", 1)), "its worker had been given up")
	e = newErrand(t, "remote")
	stale := brought("n", 0)
	stale.Since--
	require.Equal(t, "conflict", e.refused(stale), "its task was deleted, and this is another one")
	stale.Carrier = "m"
	require.Equal(t, "conflict", e.refused(stale), "also where that one is carried")
	require.Equal(t, "conflict", newErrand(t, "queue").refused(brought("n", 0)), "pollers have claims")
	require.Equal(t, "conflict", newErrand(t, "local_func").refused(brought("n", 0)))
}

// recovery returns the Recover command after the member of a job has left at the given time.
func recovery(since, went int64, pushed ...string) flow.Recover {
	c := flow.Recover{Since: since, Return: flow.Return{Grace: 5_000, Pushed: pushed}}
	if went > 0 {
		c.Gone = []flow.Departure{{Member: "other", At: 1}, {Member: "m", At: went}}
	}
	return c
}

// inOrder marks the departed members as having left in order.
func inOrder(c flow.Recover) flow.Recover {
	for i := range c.Gone {
		c.Gone[i].Left = true
	}
	return c
}

func TestRecoverWaitsForWorkersThatMayBringTheirJobs(t *testing.T) {
	for name, c := range map[string]struct {
		exec    string
		recover flow.Recover
		until   int64 // 0 if it is not left to the worker
	}{
		"since its member went":                    {"remote", recovery(100, 8_000), 13_000},
		"since then, whoever had the task then":    {"remote", recovery(9_900, 8_000), 13_000},
		"as long as it takes to find the owner":    {"remote", recovery(9_900, 2_000), 10_900},
		"since the member began":                   {"remote", recovery(9_000, 0), 14_000},
		"also a job that push workers do not get":  {"push", recovery(9_000, 0, "z"), 14_000},
		"a job that may be with a push worker not": {"push", recovery(9_000, 0, "s"), 0},
		"unless its member left in order":          {"push", inOrder(recovery(9_900, 8_000, "s")), 13_000},
		"then a function neither":                  {"local_func", inOrder(recovery(9_900, 8_000)), 0},
		"no longer than that":                      {"remote", recovery(100, 4_000), 0},
		"not without a grace":                      {"remote", flow.Recover{Since: 9_990}, 0},
		"a function not":                           {"local_func", recovery(9_000, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newErrand(t, c.exec)
			e.now = 10_000
			d := e.do("n", c.recover)
			if c.until == 0 {
				require.Equal(t, "n", dispatched(d.Effects)[0].Carrier)
				return
			}
			require.Empty(t, d.Events)
			require.Equal(t, []flow.Effect{flow.Alarm{At: c.until, Kind: flow.AlarmReturn}}, d.Effects)
			e.now = c.until
			require.Len(t, dispatched(e.do("n", c.recover).Effects), 1)
		})
	}
}

func TestAStoppingMemberLeavesJobsToAttachedWorkers(t *testing.T) {
	stays := flow.Leave{Return: flow.Return{Grace: 5_000}}
	for name, c := range map[string]struct {
		exec  string
		leave flow.Leave
		left  bool
	}{
		"attached": {"remote", stays, true},
		"pushed":   {"push", flow.Leave{Return: flow.Return{Grace: 5_000, Pushed: []string{"s"}}}, false},
		"with a worker that goes elsewhere": {"push",
			flow.Leave{Return: flow.Return{Grace: 5_000, Pushed: []string{"s"}},
				Parted: []flow.Address{jobAt}}, true},
		"without a grace": {"remote", flow.Leave{}, false}, "a function": {"local_func", stays, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newErrand(t, c.exec)
			e.do("m", flow.Report{Address: jobAt, Lost: true, Unbegun: true})
			e.do("m", flow.Begin{Address: jobAt, Carrier: "m"})
			require.Equal(t, c.left, len(e.do("m", c.leave).Events) == 0)
		})
	}
}
