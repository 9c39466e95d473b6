package actors_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/faulty"
)

// byHand is a noting clock that leaves it to the test when something happens that somebody waits for just so long for.
type byHand struct {
	noting
	after time.Duration
	never time.Duration // what does not happen at all
	due   chan func()
}

func (c byHand) AfterFunc(d time.Duration, f func()) func() bool {
	switch d {
	case c.after:
		c.due <- f
	case c.never:
	default:
		return c.noting.AfterFunc(d, f)
	}
	return func() bool { return true }
}

func TestAPollIsAnsweredThoughOneJobComesAfterTheOther(t *testing.T) {
	const wait = patience + time.Millisecond // nobody else waits for just so long
	clock := byHand{newNoting(wait), actors.PollTakesFor, actors.PollWaitsFor, make(chan func(), 1)}
	var held chan chan struct{} // what the commits under way wait for; nil = they do not
	th := start(t, actors.Config{Host: actors.Host{Clock: clock}, Store: faulty.Wrap(newLeaping(), faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
		if held == nil {
			return faulty.Fault{}
		}
		written := make(chan struct{})
		held <- written
		return faulty.Hold(written)
	}})})
	version := th.publish(t, queueOf("x"))
	got := make(chan []engine.Claimed, 1)
	go func() {
		claimed, _ := th.Poll(t.Context(), engine.Poll{Worker: "w", Services: []string{"x"}, Max: 100, Wait: wait})
		got <- claimed
	}()
	<-clock.begun
	require.Empty(t, th.poll(t, 0, 1, "y")) // so the sessions have heard of the first one
	held = make(chan chan struct{}, 3)
	begin := func(uncommitted int64) {
		go func() {
			_, _, _ = th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: json.RawMessage(`{}`)})
		}()
		require.Eventually(t, func() bool { return th.Stats().Uncommitted == uncommitted }, patience, time.Millisecond)
	}
	begin(1)
	first := <-held
	begin(2) // claimed, too, before the first one is
	close(first)
	enough := <-clock.due
	second := <-held
	enough()
	require.Empty(t, th.poll(t, 0, 1, "y")) // so the sessions have heard of that
	begin(2)
	close(second)
	third := <-held
	defer close(third)
	select {
	case claimed := <-got:
		require.Len(t, claimed, 2, "those that it was promised before")
	case <-time.After(5 * time.Second):
		require.Fail(t, "it waits for a job that came later")
	}
}
