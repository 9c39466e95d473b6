package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// keyed starts a task of a flow with keys.
func keyed(t *testing.T, definition, params string) *table {
	plan := flowtest.Plan(t, "# in YAML\n"+definition)
	plan.FlowID = "f"
	tb := newTable(t, plan)
	_, err := tb.do(flow.Start{Version: "v", Params: json.RawMessage(params)})
	require.NoError(t, err)
	return tb
}

func TestAJobIsDispatchedWhenItHasItsPermit(t *testing.T) {
	tb := keyed(t, `{start: a, nodes: {a: {service: s, timeout_ms: 500, concurrency: {key: `+
		`$params.customer, limit: 3, fair: $params.user}, priority: $params.p}}}`,
		`{"customer":"c7","user":"u1","p":7}`)
	require.Empty(t, tb.jobs)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	require.Len(t, tb.asks, 1)
	require.Equal(t, at, tb.asks[0].Address)
	require.Equal(t, flow.Permit{Key: "jobs:f/a:c7", Limit: 3, Priority: 7, Fair: "u1"}, tb.asks[0].Permit)
	require.Equal(t, flow.UnitPending, tb.state.Root.Step.Units[0].Status)

	waits := flow.Waiting(tb.state)
	require.Len(t, waits, 1)
	require.Equal(t, "permit", waits[0].For)
	require.Equal(t, "it waits for jobs:f/a:c7, of which 3 may be under way at once", waits[0].Text)
	due, idle := flow.Idle(tb.state)
	require.True(t, idle, "a task that waits for a permit may rest")
	require.Zero(t, due, "its timeout counts from when it begins")

	tb.wait(1_000)
	tb.tell(flow.Granted{Address: at, Key: "jobs:f/a:other"})
	require.Empty(t, tb.jobs, "another key is another's")
	tb.tell(flow.Granted{Address: at, Key: "jobs:f/a:c7"})
	require.Len(t, tb.jobs, 1)
	require.Equal(t, "m1", tb.jobs[at].Carrier)
	require.Equal(t, int64(epoch+1_000), tb.jobs[at].EnqueuedAt)
	require.Empty(t, tb.tell(flow.Granted{Address: at, Key: "jobs:f/a:c7"}).Events, "twice is once")
	require.Equal(t, []flow.Held{{at, "jobs:f/a:c7"}}, tb.held)

	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.Empty(t, tb.held, "who is over holds nothing")
}

func TestEachAttemptRequestsItsPermitAndRetryDelaysHoldNone(t *testing.T) {
	tb := keyed(t, `{start: a, nodes: {a: {service: third, retry: {max_attempts: 3, delay: 100ms}, `+
		`concurrency: {limit: 1}, rate: {limit: 5, per: 1s}}}}`, `{}`)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	for attempt := 1; attempt <= 3; attempt++ {
		at.Attempt = attempt
		require.Equal(t, "jobs:f/a", tb.asks[0].Key)
		tb.tell(flow.Granted{Address: at, Key: "jobs:f/a"})
		require.Empty(t, tb.jobs, "it has one of two")
		require.Equal(t, flow.Permit{Key: "rate:f/a", Limit: 5, PerMS: 1_000}, tb.asks[0].Permit)
		tb.work()
		require.Empty(t, tb.held)
		tb.wait(200)
	}
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestEachUnitHasTheKeyOfItsItem(t *testing.T) {
	for _, definition := range []string{
		`{start: a, nodes: {a: {kind: foreach, parallel_mode: concurrent, service: s, prep: ` +
			`{input_key: $params.list}, concurrency: {name: crm, key: $item.id, limit: 1}}}}`,
		`{nodes: {a: {service: s, each: {items: $run.list}, concurrency: {name: crm, key: $item.id, limit: 1}}}}`,
	} {
		tb := keyed(t, definition, `{"list":[{"id":"x"},{"id":7},{"no":1}]}`)
		var all []string
		for _, ask := range tb.asks {
			all = append(all, ask.Key)
		}
		require.Equal(t, []string{"jobs:crm:x", "jobs:crm:7", "jobs:crm:null"}, all)
		tb.work()
		require.Equal(t, flow.TaskCompleted, tb.state.Status)
	}
}

func TestUnitsWithOneKeyAreOneEvent(t *testing.T) {
	tb := keyed(t, `{nodes: {a: {service: s, each: {count: 500}, concurrency: {key: $run.customer, limit: 9}}}}`, `{"customer":"c"}`)
	require.Len(t, tb.asks, 500)
	require.Len(t, tb.events, 3)
	require.Equal(t, "jobs:f/a:c", tb.asks[499].Key)
}

func TestATaskRequestsItsPermitBeforeItsFirstNode(t *testing.T) {
	tb := keyed(t, `{concurrency: {key: $params.customer, limit: 2}, start: a, nodes: {a: {service: s}}}`, `{"customer":"c"}`)
	require.Equal(t, flow.TaskPending, tb.state.Status)
	require.Len(t, tb.events, 1)
	require.Equal(t, "tasks:f:c", tb.asks[0].Key)
	require.Equal(t, "permit", flow.Waiting(tb.state)[0].For)
	tb.crash("m2", 0)
	require.Empty(t, tb.jobs, "it still waits")
	tb.grant()
	require.Len(t, tb.jobs, 1)
	require.Len(t, tb.held, 1)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.Empty(t, tb.held)
}

func TestARetriedTaskRequestsItsPermitAgain(t *testing.T) {
	tb := keyed(t, `{concurrency: {limit: 2}, start: a, nodes: {a: {service: boom, on_error: fail}}}`, `{}`)
	first := tb.asks[0].Address
	tb.work()
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	tb.tell(flow.RetryTask{})
	require.Len(t, tb.asks, 1)
	require.NotEqual(t, first, tb.asks[0].Address, "what was said to its first life means nothing now")
	require.Empty(t, tb.tell(flow.Granted{Address: first, Key: tb.asks[0].Key}).Events)
	require.Empty(t, tb.jobs)
	tb.work()
	require.Equal(t, flow.TaskFailed, tb.state.Status)
}

func TestAPermitStartsNothingDuringAGentleCancel(t *testing.T) {
	for _, profile := range []string{"troupe", "pgflow"} {
		tb := keyed(t, `{profile: `+profile+`, concurrency: {limit: 2}, nodes: {a: {service: s}}}`, `{}`)
		ask := tb.asks[0]
		short := flow.Env{Now: epoch, Member: "m1", Limits: flow.Limits{Events: 1}}
		decision, err := flow.Decide(tb.state, flow.Cancel{Gently: true}, short)
		require.NoError(t, err)
		require.Equal(t, flow.Proceed{}, decision.More, "the decision has no room for the end of the task")
		decision, err = flow.Decide(tb.state, flow.Granted{Address: ask.Address, Key: ask.Key}, short)
		require.NoError(t, err)
		require.Len(t, decision.Events, 1)
		require.Equal(t, flow.TaskEnded, decision.Events[0].Type)
		require.Equal(t, flow.TaskCanceled, tb.state.Status)
	}
}

func TestAClaimBeginsNothingDuringAGentleCancel(t *testing.T) {
	tb := keyed(t, `{start: a, nodes: {a: {service: s, exec_type: queue}}}`, `{}`)
	var offered flow.Address
	for at := range tb.jobs {
		offered = at
	}
	short := flow.Env{Now: epoch, Member: "m1", Limits: flow.Limits{Events: 1}}
	decision, err := flow.Decide(tb.state, flow.Cancel{Gently: true}, short)
	require.NoError(t, err)
	require.Equal(t, flow.Proceed{}, decision.More, "the decision has no room for the end of the attempt")
	_, err = flow.Decide(tb.state, flow.Claim{Address: offered, Worker: "w", Token: "t", Until: epoch + 1}, short)
	require.ErrorIs(t, err, flow.ErrOver)
	decision, err = flow.Decide(tb.state, flow.Proceed{}, flow.Env{Now: epoch, Member: "m1"})
	require.NoError(t, err)
	require.Equal(t, []flow.EventType{flow.AttemptEnded, flow.TaskEnded},
		[]flow.EventType{decision.Events[0].Type, decision.Events[1].Type})
}

func TestATaskThatWaitsIsCanceledAtOnce(t *testing.T) {
	for name, definition := range map[string]string{
		"for the whole flow": `{concurrency: {limit: 2}, start: a, finally: z, nodes: {a: {service: s}, z: {service: s}}}`,
		"for a node":         `{start: a, nodes: {a: {service: s, concurrency: {limit: 2}}}}`,
		"for a node of dag":  `{nodes: {a: {service: s, each: {count: 5}, concurrency: {limit: 2}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, gently := range []bool{false, true} {
				tb := keyed(t, definition, `{}`)
				tb.tell(flow.Cancel{Gently: gently})
				require.Equal(t, flow.TaskCanceled, tb.state.Status, "what has not begun is not waited for, nor finished")
			}
		})
	}
}

func TestRefusedAttemptsFailAndEvictedOnesAreCanceled(t *testing.T) {
	tb := keyed(t, `{start: a, nodes: {a: {service: s, on_error: fail, concurrency: {key: k, limit: 2, when_full: refuse}}}}`, `{}`)
	require.Equal(t, flow.FullRefuse, tb.asks[0].Full)
	tb.tell(flow.Granted{Address: tb.asks[0].Address, Key: tb.asks[0].Key, Refused: true})
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Equal(t, "a: limit: no room for jobs:f/a:k, of which 2 may be under way at once, and when_full is refuse", tb.state.Error)

	tb = keyed(t, `{concurrency: {limit: 2, when_full: refuse}, start: a, nodes: {a: {service: s}}}`, `{}`)
	tb.tell(flow.Granted{Address: tb.asks[0].Address, Key: tb.asks[0].Key, Refused: true})
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Contains(t, tb.state.Error, "limit: no room for tasks:f,")

	tb = keyed(t, `{start: a, nodes: {a: {service: s, on_error: fail, concurrency: {limit: 1, when_full: cancel_running}}}}`, `{}`)
	evict := flow.Evict{Address: tb.asks[0].Address, Key: tb.asks[0].Key}
	require.Empty(t, tb.tell(evict).Events, "who holds nothing is left alone")
	tb.grant()
	tb.tell(evict)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Empty(t, tb.jobs)
	require.Equal(t, "a: canceled: a newer one takes its place at jobs:f/a", tb.state.Error)

	tb = keyed(t, `{concurrency: {limit: 1, when_full: cancel_running}, start: a, nodes: {a: {service: s}}}`, `{}`)
	evict = flow.Evict{Address: tb.asks[0].Address, Key: tb.asks[0].Key}
	tb.grant()
	tb.tell(evict)
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
}

func TestLongKeysStayDistinct(t *testing.T) {
	long := string(make([]byte, 300))
	for i := range 300 {
		long = long[:i] + "x" + long[i+1:]
	}
	var all []string
	for _, end := range []string{"a", "b", "\\u0000"} {
		tb := keyed(t,
			`{start: a, nodes: {a: {service: s, concurrency: {key: $params.k, limit: 1, name: `+
				long[:200]+`}}}}`, `{"k":"`+long+end+`"}`)
		key := tb.asks[0].Key
		require.LessOrEqual(t, len(key), 400)
		require.True(t, flow.IsText(key))
		require.NotContains(t, all, key)
		all = append(all, key)
	}
}

// The compensations of the retried task were cut short, so it has units to undo before it has begun
// again.
func TestARepeatedRefusalDuringCompensationChangesNothing(t *testing.T) {
	tb := keyed(t,
		`{concurrency: {limit: 1, when_full: refuse}, nodes: {a: {service: s, compensate: undo}, b: {service: s, compensate: undo},
		c: {service: boom, depends_on: [a, b]}, undo: {service: s}}}`, `{}`)
	tb.grant()
	for tb.state.Closing == nil {
		_, err := tb.do(tb.hands(tb.jobs[tb.open()[0]]))
		require.NoError(t, err)
	}
	tb.tell(flow.Cancel{Force: true})
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Len(t, tb.state.Done, 1)
	tb.tell(flow.RetryTask{})
	refused := flow.Granted{Address: tb.asks[0].Address, Key: tb.asks[0].Key, Refused: true}
	tb.tell(refused)
	require.NotNil(t, tb.state.Closing)
	require.Len(t, tb.jobs, 1, "it undoes")
	require.Empty(t, tb.tell(refused).Events)
	require.Len(t, tb.jobs, 1)
	require.False(t, tb.state.Status.Ended())
	_, err := tb.do(tb.hands(tb.jobs[tb.open()[0]]))
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Contains(t, tb.state.Error, "limit: no room for tasks:f,")
	require.Empty(t, tb.asks)
}

func TestAHolderThatWaitsForItsRateIsEvicted(t *testing.T) {
	tb := keyed(t, `{start: a, nodes: {a: {service: s, on_error: fail, concurrency: {limit: 1, `+
		`when_full: cancel_running}, rate: {limit: 1, per: 1h}}}}`, `{}`)
	at := tb.asks[0].Address
	tb.tell(flow.Granted{Address: at, Key: "jobs:f/a"})
	require.Len(t, tb.held, 1)
	d := tb.tell(flow.Evict{Address: at, Key: "jobs:f/a"})
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Equal(t, "a: canceled: a newer one takes its place at jobs:f/a", tb.state.Error)
	require.Empty(t, tb.held)
	require.Empty(t, tb.asks)
	for _, e := range d.Effects {
		_, ok := e.(flow.Withdraw)
		require.False(t, ok, "there is no job to be taken back")
	}
}
