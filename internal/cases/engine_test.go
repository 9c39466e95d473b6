package cases_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/rehearse"
	"github.com/troupe-engine/troupe/worker"
)

// stage is an engine with a worker that answers jobs with the mocks of a case, one case at a time.
// Delays in a case are skipped.
type stage struct {
	*testing.T
	*troupe.Engine
	mu   sync.Mutex
	cast *cases.Cast
}

// newStage publishes the flow of a file under the slug flow.
func newStage(t *testing.T, f *cases.File, definition string) *stage {
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "troupe.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &stage{T: t, Engine: e}
	w := worker.New(worker.Config{Server: "http://" + listener.Addr().String(), Attach: true})
	for _, service := range cases.NamesOf(f.Plan).Services {
		w.Handle(service, s.carryOut)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Serve(ctx, listener) })
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	require.NoError(t, e.Publish(t.Context(), "flow", []byte(definition)))
	require.Eventually(t, func() bool {
		there, err := e.Workers(t.Context())
		return err == nil && slices.ContainsFunc(there, func(w troupe.KnownWorker) bool { return slices.Contains(w.Services, "charge") })
	}, time.Minute, time.Millisecond)
	return s
}

// canceled is the minimal duration of a call during which its case is canceled.
const canceled = time.Hour

func (s *stage) carryOut(ctx context.Context, job worker.Job) (any, error) {
	s.mu.Lock()
	a := s.cast.Answer(&rehearse.Call{Name: job.Step,
		Job: flow.Job{Exec: &flow.Exec{Service: job.Service}, Input: job.Input, Params: job.Params,
			Address: flow.Address{Node: job.Step, Unit: job.Unit, Attempt: job.Attempt}}})
	s.mu.Unlock()
	switch {
	case a.After >= canceled:
		err := s.Cancel(ctx, job.Task)
		<-ctx.Done()
		return nil, errors.Join(err, ctx.Err())
	case a.Err != nil:
		return nil, worker.Fatal(a.Err)
	case a.Error != "" && a.Fatal:
		return nil, worker.Fatal(errors.New(a.Error))
	case a.Error != "":
		return nil, errors.New(a.Error)
	}
	return a.Output, nil
}

// play runs a task of a case on the engine and returns its history.
func (s *stage) play(c *cases.Case) (happened []string, end *troupe.Result) {
	s.mu.Lock()
	s.cast = cases.NewCast(c.Mocks)
	s.mu.Unlock()
	id, err := s.Start(s.Context(), "flow", c.Params)
	require.NoError(s, err)
	for e, err := range s.Watch(s.Context(), id, "") {
		require.NoError(s, err)
		happened = append(happened, fact{flow.EventType(e.Type), e.Scope, e.Node, e.Visit, e.Unit,
			e.Attempt, e.State, e.Action, e.Next, e.Error, e.Reason,
			e.Input, e.InputRef, e.Output, e.Params, e.Total, e.ReusedUnits, e.Key}.text()...)
		if e.Type == string(flow.StepEntered) && e.Node == "approve" {
			require.NoError(s, s.Signal(s.Context(), id, "decision", !strings.Contains(c.Name, "refused")))
		}
	}
	end, err = s.Wait(s.Context(), id)
	require.NoError(s, err)
	return happened, end
}

// fact is an event without times and without its worker.
type fact struct {
	Type                               flow.EventType
	Scope, Node                        string
	Visit, Unit, Attempt               int
	State, Action, Next, Error, Reason string
	Input                              json.RawMessage
	InputRef                           string
	Output, Params                     json.RawMessage
	Total, Kept                        int
	Key                                string
}

// text returns the comparable form of a fact. Facts about workers are omitted.
func (f fact) text() []string {
	switch f.Type {
	case flow.AttemptStarted, flow.AttemptClaimed, flow.AttemptExtended, flow.AttemptStatusChanged, flow.AttemptMoved, flow.AttemptRequeued:
		return nil
	}
	return []string{fmt.Sprintf("%s %s/%s#%d[%d] attempt %d: %s %q next %q error %q reason %q "+
		"input %s %s output %s params %s %d %d %s", f.Type, f.Scope, f.Node, f.Visit,
		f.Unit, f.Attempt, f.State, f.Action, f.Next, f.Error, f.Reason, f.Input, f.InputRef, f.Output, f.Params, f.Total, f.Kept, f.Key)}
}

// rehearsed returns the history of a rehearsal.
func rehearsed(s *rehearse.Story) (happened []string) {
	for i := range s.Events {
		e := &s.Events[i]
		happened = append(happened, fact{e.Type, e.Scope, e.Node, e.Visit, e.Unit, e.Attempt, e.Status, e.Action, e.Next, e.Error, e.Reason,
			e.Input, e.InputRef, e.Output, e.Params, e.Total, e.Kept, e.Key}.text()...)
	}
	return happened
}

// graphCases are cases of the order flow in graph mode.
const graphCases = `
params: {order: 7, amount: 12}
mocks:
  reserve: {output: {id: r1}}
  charge: {expr: "{'paid': input.amount}"}
  ship: {echo: true}
  refuse: {output: no}
  release: {output: released}
when_waiting: {approve: {answer: true, after: 2d}}
expect: {error: ""}
cases:
- name: shipped
- name: declined twice
  mocks: {charge: [{error: declined, times: 2}, {output: {paid: 12}}]}
- name: declined for good
  mocks: {charge: {error: declined}}
- name: refused
  when_waiting: {approve: reject}
- name: never reserved
  mocks: {reserve: {error: no such thing, fatal: true}}
`

// TestEngineAndRehearsalHaveEqualHistories also runs cases on an engine with a store and a worker,
// and compares the histories event by event. Simultaneous events may be in another order.
func TestEngineAndRehearsalHaveEqualHistories(t *testing.T) {
	soon := strings.NewReplacer("wait_ms: 3600000", "wait_ms: 1", "delay: 10s", "delay: 1ms", "delay: 1h", "delay: 1ms")
	graph := in(t, map[string]string{"order.yaml": soon.Replace(orderFlow), "order.test.yaml": graphCases})
	for name, dir := range map[string]string{"dag": example(t, "", ""), "graph": graph} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "order.yaml")
			definition := soon.Replace(readText(t, path))
			require.NoError(t, os.WriteFile(path, []byte(definition), 0o600))
			f, err := cases.Open(filepath.Join(dir, "order.test.yaml"), "")
			require.NoError(t, err)
			s := newStage(t, f, definition)
			for _, c := range f.Cases {
				if len(c.Acts) == 0 {
					continue // idle weeks cannot be skipped on an engine
				}
				t.Run(c.Name, func(t *testing.T) {
					story := rehearse.Run(f.Play(c))
					require.NoError(t, story.Err)
					happened, end := s.play(c)
					want := rehearsed(story)
					slices.Sort(happened)
					slices.Sort(want)
					require.Equal(t, want, happened)
					require.Equal(t, []any{story.State.Status, story.State.Error}, []any{end.Status, end.Error})
					require.JSONEq(t, string(story.State.Result()), cmp.Or(string(end.Value), "null"))
				})
			}
		})
	}
}
