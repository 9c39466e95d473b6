package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// journal is the engine's side of one function: it has the recorded steps and the waits.
type journal struct {
	mu    sync.Mutex
	given int // number of the newest delivery
	steps []conversation.Step
	waits []conversation.Wait
	began chan struct{} // gets a value when waits begin
}

// delivery is the host of one call of the function. After a number of records it refuses all
// others, as if the function had another carrier.
type delivery struct {
	*journal
	given, left int
	end         func(conversation.Step)
}

func (j *journal) newDelivery(left int) *delivery {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.given++
	return &delivery{journal: j, given: j.given, left: left}
}

func (j *delivery) Listen(end func(conversation.Step)) { j.end = end }

func (j *delivery) Now() time.Time { return time.UnixMilli(1_000) }

func (j *delivery) Record(_ context.Context, steps []*conversation.Step, waits []*conversation.Wait) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range steps {
		if j.left == 0 || j.given != j.journal.given {
			return conversation.ErrOver
		}
		j.left--
		j.steps = append(j.steps, *s)
		if s.Kind == conversation.Race {
			j.waits = slices.DeleteFunc(j.waits, func(w conversation.Wait) bool {
				return len(w.Name) > len(s.Name) && w.Name[:len(s.Place())] == s.Place()
			})
		}
	}
	j.addWaits(waits)
	return nil
}

func (j *journal) addWaits(waits []*conversation.Wait) {
	for _, w := range waits {
		if !slices.ContainsFunc(j.waits, func(other conversation.Wait) bool { return other.Place() == w.Place() }) {
			j.waits = append(j.waits, *w)
		}
	}
	if len(waits) > 0 {
		select {
		case j.began <- struct{}{}:
		default:
		}
	}
}

// endWait ends the nth wait that has begun.
func (j *journal) endWait(n int) conversation.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.waits[n].Step
	s.Output = json.RawMessage(`"` + s.Place() + `"`)
	j.waits = slices.Delete(j.waits, n, n+1)
	j.steps = append(j.steps, s)
	return s
}

// code is a function that is a flow.
type code func(b *conversation.Branch) (string, error)

// run calls a function, after crashes behind the given numbers of records. It ends the newest wait
// whenever the function only waits. The function stays in memory then if it is warm.
func (j *journal) run(t *testing.T, fn code, warm bool, crashes ...int) conversation.Outcome {
	t.Helper()
	j.began = make(chan struct{}, 1)
	var c *conversation.Conversation
	for {
		host := j.newDelivery(1_000_000)
		if len(crashes) > 0 {
			host.left, crashes = crashes[0], crashes[1:]
		}
		told := job.Job{ID: "j", Task: "t"}
		j.mu.Lock()
		history := slices.Clone(j.steps)
		j.mu.Unlock()
		var o conversation.Outcome
		if c != nil && c.CanResume(history) {
			o = c.Resume(t.Context(), told, history, host)
		} else {
			c = conversation.New(t.Context(), told, history, host, time.Second)
			o = c.Run(t.Context(), func() (json.RawMessage, error) {
				v, err := fn(c.Main())
				return json.RawMessage(`"` + v + `"`), err
			})
		}
		switch {
		case o.Over:
			c = nil
		case len(o.Waits) > 0:
			j.mu.Lock()
			j.addWaits(o.Waits)
			n := len(j.waits) - 1
			j.mu.Unlock()
			j.endWait(n)
			if !warm {
				c.Drop()
				c = nil
			}
		default:
			return o
		}
	}
}

func doStep(b *conversation.Branch, name string) (string, error) {
	out, err := b.Do(name, conversation.Options{}, func(context.Context) (json.RawMessage, error) { return json.Marshal(name) })
	return string(out), err
}

func sleepHour(b *conversation.Branch, name string) error {
	_, err := b.Await(conversation.Sleep, name, "", conversation.Options{Within: time.Hour})
	return err
}

// newMixedFunction returns a function with branches, waits, a race and an undo.
func newMixedFunction(undone *[]string) code {
	return func(b *conversation.Branch) (string, error) {
		if _, err := doStep(b, "first"); err != nil {
			return "", err
		}
		one := b.Go("aside", func(b *conversation.Branch) {
			_ = sleepHour(b, "nap")
			_, _ = doStep(b, "work")
			b.Undo("undo aside", conversation.Options{}, func(context.Context) error { *undone = append(*undone, "aside"); return nil })
		})
		b.Each("each", 5, 2, func(i int, b *conversation.Branch) {
			_, _ = doStep(b, "work")
			if i%2 == 0 {
				_ = sleepHour(b, "nap")
			}
			_, _ = doStep(b, "more")
		})
		winner := b.Race("race", 3, func(i int, b *conversation.Branch) {
			_, _ = doStep(b, "work")
			b.Undo("undo", conversation.Options{}, func(context.Context) error {
				*undone = append(*undone, fmt.Sprint("race ", i))
				return nil
			})
			if i > 0 {
				_ = sleepHour(b, "nap")
			}
		})
		if winner != 0 {
			return "", fmt.Errorf("branch %d won", winner)
		}
		one.Await(b)
		if err := sleepHour(b, "nap"); err != nil {
			return "", err
		}
		return "", errors.New("failed on purpose")
	}
}

// TestFunctionEndsTheSameBehindEveryCrash repeats a function behind each of its records.
func TestFunctionEndsTheSameBehindEveryCrash(t *testing.T) {
	for _, warm := range []bool{true, false} {
		var undone []string
		whole := &journal{}
		o := whole.run(t, newMixedFunction(&undone), warm)
		require.EqualError(t, o.Err, "failed on purpose")
		require.Empty(t, o.Unasked)
		require.Subset(t, undone, []string{"aside", "race 0"}, "the others may not have come so far")
		records := len(whole.steps)
		for crash := range records {
			undone = nil
			j := &journal{}
			o := j.run(t, newMixedFunction(&undone), warm, crash, 2)
			require.EqualError(t, o.Err, "failed on purpose", "crash behind %d", crash)
			seen := map[string]int{}
			for _, s := range j.steps {
				seen[s.Place()]++
			}
			for place, n := range seen {
				require.Equal(t, 1, n, "%s, crash behind %d", place, crash)
			}
			require.GreaterOrEqual(t, len(j.steps), records-2, "a losing branch may not have come to its work")
		}
	}
}

// TestWaitEndsWhileOtherBranchesGoOn gives a function the end of a wait during a step.
func TestWaitEndsWhileOtherBranchesGoOn(t *testing.T) {
	j := &journal{began: make(chan struct{}, 1)}
	host := j.newDelivery(1_000)
	c := conversation.New(t.Context(), job.Job{ID: "j"}, nil, host, time.Second)
	slept := make(chan struct{})
	ended := make(chan conversation.Outcome)
	go func() {
		ended <- c.Run(t.Context(), func() (json.RawMessage, error) {
			b := c.Main()
			aside := b.Go("aside", func(b *conversation.Branch) {
				_ = sleepHour(b, "nap")
				close(slept)
			})
			_, err := b.Do("work", conversation.Options{}, func(context.Context) (json.RawMessage, error) { <-slept; return nil, nil })
			aside.Await(b)
			return json.RawMessage("7"), err
		})
	}()
	<-j.began
	host.end(j.endWait(0))
	o := <-ended
	require.NoError(t, o.Err)
	require.Equal(t, "7", string(o.Output))
	require.Equal(t, []string{"aside/nap", "work"}, []string{j.steps[0].Place(), j.steps[1].Place()})
}
