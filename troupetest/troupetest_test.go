package troupetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/job"
	"github.com/troupe-engine/troupe/troupetest"
)

const order = `
start: approve
on_error: fail
result: payment
nodes:
  approve: {kind: approval, params: {approval_key: $shared.decision}, timeout_ms: 604800000}
  charge: {service: charge, retry: {max_attempts: 3, delay: 1m}, prep: {input_map: {amount: $params.amount}}, post: {output_key: payment}, compensate: refund}
  ship: {service: ship}
  refund: {service: refund, prep: {input_key: $input.output}}
edges:
- {from: approve, action: approved, to: charge}
- {from: charge, action: default, to: ship}
`

type charge struct{ Amount int }

type payment struct {
	Paid int `json:"paid"`
}

var params = map[string]any{"amount": 12}

func TestATaskRunsWithMocksAndHandlers(t *testing.T) {
	f := troupetest.New(t, order)
	f.Mock("charge", troupetest.Fails("declined").Times(2).Then(troupetest.Handler(func(_ context.Context, c charge) (payment, error) {
		return payment{c.Amount}, nil
	})).After("3s"))
	f.Mock("ship", troupetest.Echo())
	f.At("2d").Approve("approve")
	r := f.Run(params)
	require.Equal(t, "completed", r.State)
	require.Equal(t, 48*time.Hour+2*time.Minute+3*time.Second, r.Took)
	require.Equal(t, []string{"approve", "charge", "ship"}, r.Steps)
	require.Len(t, r.CallsOf("charge"), 3)
	var p payment
	require.NoError(t, r.Read(&p))
	require.Equal(t, payment{12}, p)
	require.JSONEq(t, `true`, string(r.Shared("decision")))
	require.True(t, r.Called("ship"))
	require.False(t, r.Called("refund"))
}

func TestHandlersFailAsTheyDoElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		handler  func(context.Context, job.Job) (any, error)
		attempts int
		err      string
	}{
		"an error is tried again": {func(context.Context, job.Job) (any, error) {
			return nil,
				errors.New("no")
		}, 3, "no"},
		"a fatal one is not": {func(context.Context, job.Job) (any, error) {
			return nil,
				job.Fatal(errors.New("never"))
		}, 1, "never"},
		"a panic is an error":            {func(context.Context, job.Job) (any, error) { panic("ouch") }, 3, "panic: ouch"},
		"what is no JSON is no result":   {func(context.Context, job.Job) (any, error) { return func() {}, nil }, 3, "unsupported type"},
		"an error may have nothing said": {func(context.Context, job.Job) (any, error) { return nil, errors.New("") }, 3, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := troupetest.New(t, order).Mock("charge", troupetest.Func(tt.handler)).WhenWaiting("approve").Answer(true).Run(params)
			require.Equal(t, "failed", r.State)
			require.Len(t, r.CallsOf("charge"), tt.attempts)
			require.Contains(t, r.Error, tt.err)
		})
	}
}

func TestAnswersMayDependOnTheCall(t *testing.T) {
	f := troupetest.New(t, `{"nodes":{"all":{"kind":"fanout","service":"s","each":{"count":3}}}}`)
	f.Mock("all", troupetest.Returns("first").Unit(0).Then(
		troupetest.Returns("late").When("unit == 2").After("1h")).Then(troupetest.Returns("other")))
	r := f.Run(nil)
	require.JSONEq(t, `{"all":["first","other","late"]}`, string(r.Value))
	require.Equal(t, time.Hour, r.Took)
}

func TestFlowsBuiltInGoAreTested(t *testing.T) {
	b := define.NewDag("report")
	b.Node("score").Service("score").After(b.Node("fetch").Service("fetch"))
	r := troupetest.Built(t, b).Mock("fetch", troupetest.Returns(1)).Mock("score", troupetest.Returns(2)).Run(nil)
	require.Equal(t, "completed", r.State)
}

// recorder is a test that records its failure.
type recorder struct {
	testing.TB
	failed string
}

type stopped struct{}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	panic(stopped{})
}
func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }
func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(func())                    {}

// failure returns the message with which a test fails.
func failure(t *testing.T, f func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != (stopped{}) {
				panic(p)
			}
		}()
		f(r)
	}()
	return r.failed
}

func TestMistakesEndTheTest(t *testing.T) {
	for want, f := range map[string]func(testing.TB){
		"unknown node, service or function: chrage: did you mean charge?": func(
			t testing.TB) {
			troupetest.New(t, order).Mock("chrage", troupetest.Echo())
		},
		`"2x" is no duration`:              func(t testing.TB) { troupetest.New(t, order).At("2x") },
		"an answer is given at least once": func(t testing.TB) { troupetest.New(t, order).Mock("charge", troupetest.Echo().Times(0)) },
		"nobody answers charge: mock it":   func(t testing.TB) { troupetest.New(t, order).WhenWaiting("approve").Answer(true).Run(params) },
		"was in vain: nothing named ship waits for an answer": func(t testing.TB) {
			troupetest.New(t, order).At("1s").Approve("ship").Run(params)
		},
		`start: unknown node "a"`:     func(t testing.TB) { troupetest.New(t, "start: a") },
		"unknown kind of fault: oder": func(t testing.TB) { troupetest.New(t, order).Faults("oder") },
	} {
		t.Run(want, func(t *testing.T) { require.Contains(t, failure(t, f), want) })
	}
}

func TestSeedsFindACompensationThatIsMissing(t *testing.T) {
	check := func(r *troupetest.Result) error {
		if r.State == "failed" && r.Called("charge") && !r.Called("refund") {
			return errors.New("the money is gone")
		}
		return nil
	}
	play := func(t testing.TB, definition string) {
		f := troupetest.New(t, definition).Mock("charge", troupetest.Returns("c1")).Mock("ship",
			troupetest.Returns("k1")).Mock("refund", troupetest.Returns("ok"))
		f.WhenWaiting("approve").After("1d").Answer(true).MayFail("ship").Seeds(1000, params, check)
	}
	require.Empty(t, failure(t, func(t testing.TB) { play(t, order) }))
	told := failure(t, func(t testing.TB) { play(t, strings.Replace(order, ", compensate: refund", "", 1)) })
	require.Contains(t, told, "the money is gone")
	require.Contains(t, told, "this takes 1 (again: TROUPETEST_SEED=")
	require.Contains(t, told, `"ship"}`)
}

func TestTheCasesOfAFileAreTests(t *testing.T) {
	troupetest.File(t, "../examples/ordertest/order.test.yaml", 50)
}
