package actors

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
)

// held tells which tasks a batch is about, and writes it when it may.
type held struct {
	persistence.Store
	entered chan []string
	release chan struct{}
}

func (held) Lanes() int { return 2 }

func (h held) Commit(_ context.Context, _ string, batch []persistence.Commit) ([]error, error) {
	tasks := make([]string, len(batch))
	for i := range batch {
		tasks[i] = batch[i].Task
	}
	h.entered <- tasks
	<-h.release
	return make([]error, len(batch)), nil
}

func TestASecondCommitOfATaskWaitsForTheFirst(t *testing.T) {
	store := held{model.New(model.Options{}), make(chan []string), make(chan struct{})}
	m, err := Start(t.Context(), Config{Store: store})
	require.NoError(t, err)
	t.Cleanup(m.Kill)
	add := func(task string) { m.lanes.add(&writing{commit: persistence.Commit{Task: task}, reply: m.tasks}) }
	add("x")
	require.Equal(t, []string{"x"}, <-store.entered)
	add("x")
	add("y")
	require.Equal(t, []string{"y"}, <-store.entered, "the other lane writes what it may")
	store.release <- struct{}{} // whichever it is, x waits for its own
	var rest []string
	select {
	case rest = <-store.entered:
		store.release <- struct{}{}
	case store.release <- struct{}{}:
		rest = <-store.entered
	}
	require.Equal(t, []string{"x"}, rest)
	store.release <- struct{}{}
}
