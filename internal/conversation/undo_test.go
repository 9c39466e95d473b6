package conversation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/conversation"
)

var errPurpose = errors.New("failed on purpose")

func TestStepThatSucceedsAfterItsFunctionFailedIsUndone(t *testing.T) {
	var undone []string
	began := make(chan struct{})
	j := &journal{}
	o := j.run(t, func(b *conversation.Branch) (string, error) {
		b.Go("aside", func(b *conversation.Branch) {
			_, _ = b.Do("work", conversation.Options{}, func(ctx context.Context) (json.RawMessage, error) {
				close(began)
				<-ctx.Done() // it has its effect anyway
				return json.RawMessage("1"), nil
			})
			b.Undo("undo", conversation.Options{}, func(context.Context) error { undone = append(undone, "aside"); return nil })
		})
		<-began
		return "", errPurpose
	}, false)
	require.Equal(t, errPurpose, o.Err)
	require.Equal(t, []string{"aside"}, undone)
	require.Equal(t, []string{"aside/work", "aside/undo"}, []string{j.steps[0].Place(), j.steps[1].Place()})
}

// TestReplayRegistersTheUndosOfBranchesThatItDoesNotAwait replays functions whose failure comes
// before their branches have repeated their steps.
func TestReplayRegistersTheUndosOfBranchesThatItDoesNotAwait(t *testing.T) {
	var undone []string
	each := func(b *conversation.Branch) {
		time.Sleep(5 * time.Millisecond) // the function is faster
		b.Each("each", 2, 1, func(i int, b *conversation.Branch) {
			time.Sleep(5 * time.Millisecond)
			_, _ = doStep(b, "work")
			b.Undo("undo", conversation.Options{}, func(context.Context) error { undone = append(undone, fmt.Sprint(i)); return nil })
		})
	}
	for name, fn := range map[string]code{
		"of Go": func(b *conversation.Branch) (string, error) {
			b.Go("aside", each)
			_ = sleepHour(b, "nap")
			return "", errPurpose
		},
		"that lose a race": func(b *conversation.Branch) (string, error) {
			b.Race("race", 2, func(i int, b *conversation.Branch) {
				if i == 1 {
					each(b)
				}
				_ = sleepHour(b, "nap")
			})
			return "", errPurpose
		},
	} {
		t.Run(name, func(t *testing.T) {
			undone = nil
			o := (&journal{}).run(t, fn, false) // it is given up when all branches wait
			require.Equal(t, errPurpose, o.Err)
			require.Equal(t, []string{"1", "0"}, undone)
		})
	}
}

func TestFunctionThatDoesNotFitIsHeldAlsoWhenItMustUndo(t *testing.T) {
	ask := func(name string) func(b *conversation.Branch) (string, error) {
		return func(b *conversation.Branch) (string, error) {
			_, err := b.Do(name, conversation.Options{}, func(context.Context) (json.RawMessage, error) { return json.RawMessage("1"), nil })
			return "", err
		}
	}
	for range 300 {
		j := &journal{}
		require.NoError(t, j.run(t, ask("a"), false).Err)
		require.Contains(t, j.run(t, ask("b"), true).Held, "the history has do a, the code asked for do b")
	}
}
