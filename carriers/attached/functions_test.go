package attached_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/flow"
)

// functionTask is the task of a function, which the test plays.
type functionTask struct {
	recorded chan []flow.CodeStep
	answers  chan error // one for each record
	end      func(flow.CodeStep)
}

// newFunctionJob returns a job of a function with some recorded steps.
func newFunctionJob(steps ...flow.CodeStep) (*job, *functionTask) {
	task := &functionTask{recorded: make(chan []flow.CodeStep, 10), answers: make(chan error, 10)}
	j := newJob(0, "flow:f")
	j.kind, j.function = flow.ExecCode, &flow.FunctionCall{Steps: steps}
	j.host = carriers.FunctionHost{
		Record: func(steps []flow.CodeStep, _ []flow.CodeWait) error {
			task.recorded <- steps
			return <-task.answers
		},
		Listen: func(end func(flow.CodeStep)) { task.end = end }}
	return j, task
}

func flowHello() *attach.Hello { return &attach.Hello{Credits: 1, Flows: []string{"f"}} }

func record(turn, seen uint64, names ...string) *attach.FromWorker {
	r := &attach.FunctionRecord{Number: 1, Turn: turn, Seen: seen}
	for _, name := range names {
		r.Steps = append(r.Steps, &attach.FunctionStep{Name: name, Use: 1, Kind: "do"})
	}
	return &attach.FromWorker{Records: []*attach.FunctionRecord{r}}
}

// hearAnswer reads the next message, which has one answer.
func (w *worker) hearAnswer() (turn uint64, outcome attach.RecordOutcome) {
	w.Helper()
	answers := w.hear().GetAnswers()
	require.Len(w, answers, 1)
	return answers[0].GetTurn(), answers[0].GetOutcome()
}

// hearSteps reads the next message, which has steps, and returns their names and the number before
// them.
func (w *worker) hearSteps() (first uint64, names []string) {
	w.Helper()
	all := w.hear().GetSteps()
	require.Len(w, all, 1)
	for _, s := range all[0].GetSteps() {
		names = append(names, s.GetName())
	}
	return all[0].GetFirst(), names
}

func TestRecordsOfAFunctionAreAnswered(t *testing.T) {
	s := open(t, attached.Options{Grace: time.Hour})
	w, _ := dial(t, s, flowHello())
	j, task := newFunctionJob(flow.CodeStep{Name: "a", Use: 1, Kind: flow.CodeDo})
	s.Send([]actors.Passage{j})
	told := w.hear().GetJobs()[0]
	require.Equal(t, []any{"f", 1, "a"}, []any{told.GetFunction().GetName(), len(told.GetFunction().GetSteps()),
		told.GetFunction().GetSteps()[0].GetName()})
	require.Empty(t, told.GetTicket())
	for turn, tt := range []struct {
		err  error
		want attach.RecordOutcome
	}{
		{nil, attach.RecordOutcome_RECORD_OUTCOME_STORED},
		{flow.ErrCodeStops, attach.RecordOutcome_RECORD_OUTCOME_STOPS},
		{flow.ErrOver, attach.RecordOutcome_RECORD_OUTCOME_OVER},
		{flow.Errorf(flow.Limit, "too large"), attach.RecordOutcome_RECORD_OUTCOME_REFUSED},
	} {
		task.answers <- tt.err
		w.to <- record(uint64(turn+1), 0, "b")
		require.Equal(t, "b", (<-task.recorded)[0].Name)
		answered, outcome := w.hearAnswer()
		require.Equal(t, []any{uint64(turn + 1), tt.want}, []any{answered, outcome})
	}
	w.to <- &attach.FromWorker{Results: []*attach.Result{{Number: 1, Outcome: attach.Outcome_OUTCOME_GIVEN_UP,
		GivenUp: &attach.FunctionGivenUp{Waits: []*attach.FunctionWait{{Name: "nap", Use: 1, Kind: "sleep", DurationMs: 5}}}}}}
	require.Equal(t, &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{{Name: "nap", Use: 1, Kind: flow.CodeSleep, MS: 5}}},
		(<-j.reports).GivenUp)
	require.Equal(t, []uint64{1}, w.hear().GetAcknowledged())
	w.to <- record(9, 0, "late")
	_, outcome := w.hearAnswer()
	require.Equal(t, attach.RecordOutcome_RECORD_OUTCOME_OVER, outcome, "the job has ended")
}

func TestUnconfirmedStepsOfAFunctionAreSentAgain(t *testing.T) {
	s := open(t, attached.Options{Grace: time.Hour})
	w, m := dial(t, s, flowHello())
	j, task := newFunctionJob()
	s.Send([]actors.Passage{j})
	require.Len(t, w.hear().GetJobs(), 1)
	for i := range 3 {
		task.end(flow.CodeStep{Name: fmt.Sprint("nap", i), Use: 1, Kind: flow.CodeSleep})
		first, names := w.hearSteps()
		require.Equal(t, []any{uint64(i), []string{fmt.Sprint("nap", i)}}, []any{first, names})
	}
	w.to <- record(1, 2, "a")
	<-task.recorded
	w.up()
	<-w.over
	w.over <- nil
	task.end(flow.CodeStep{Name: "nap3", Use: 1, Kind: flow.CodeSleep})
	task.answers <- nil

	hello := flowHello()
	hello.Session, hello.Held = m.GetWelcome().GetSession(), []uint64{1}
	w = attachTo(t, s)
	hello.Protocol, hello.Worker = 1, "w"
	w.to <- &attach.FromWorker{Hello: hello}
	again := w.hear()
	require.True(t, again.GetWelcome().GetResumed())
	for len(again.GetSteps()) == 0 { // the answer to the record may come before
		again = w.hear()
	}
	require.EqualValues(t, 2, again.GetSteps()[0].GetFirst())
	require.Len(t, again.GetSteps()[0].GetSteps(), 2, "nap2 and nap3")
	task.answers <- nil
	w.to <- record(1, 4, "a")
	require.Equal(t, "a", (<-task.recorded)[0].Name, "it is stored once by its task")
	for m := w.hear(); len(m.GetAnswers()) == 0 || m.GetAnswers()[0].GetTurn() != 1; {
		m = w.hear()
	}
}

func TestFunctionThatNoWorkerHasIsHeld(t *testing.T) {
	s := open(t, attached.Options{})
	j, _ := newFunctionJob()
	s.Send([]actors.Passage{j})
	require.Contains(t, (<-j.reports).GivenUp.Reason, "no program and no attached worker has the flow")
	foreign, _ := newFunctionJob()
	foreign.foreign = true
	s.Send([]actors.Passage{foreign})
	require.Equal(t, flow.Report{Lost: true, Unbegun: true}, <-foreign.reports, "its owner decides")
	undoes, _ := newFunctionJob()
	undoes.function.Undoes = true
	s.Send([]actors.Passage{undoes})
	_, m := dial(t, s, flowHello())
	require.True(t, m.GetJobs()[0].GetFunction().GetUndoes(), "it has waited for its worker")
}

func TestServiceWithTheNameOfAFlowIsRefused(t *testing.T) {
	s := open(t, attached.Options{})
	w := attachTo(t, s)
	w.to <- &attach.FromWorker{Hello: &attach.Hello{Protocol: 1, Worker: "w", Credits: 1, Services: []string{"flow:f"}}}
	err := <-w.over
	w.over <- nil
	require.ErrorContains(t, err, "name these in flows")
}
