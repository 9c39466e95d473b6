package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// poison crashes the actors of one task at messages that contain a text.
type poison struct {
	task, text atomic.Value
	crashes    atomic.Int64
}

func newPoison(text string) *poison {
	p := &poison{}
	p.task.Store("nobody's")
	p.text.Store(text)
	return p
}

func (p *poison) probe(actor string, message any) {
	if actor != "task" {
		return
	}
	said := fmt.Sprintf("%T %+v", message, message)
	if strings.HasPrefix(said, "*actors.taskCommand ") && strings.Contains(said,
		p.task.Load().(string)) && strings.Contains(said, p.text.Load().(string)) {
		p.crashes.Add(1)
		panic("a planted crash")
	}
}

// pauseless is a clock on which the first pause after a crash never ends.
type pauseless struct{ lazy }

func (pauseless) AfterFunc(d time.Duration, f func()) func() bool {
	if d == 200*time.Millisecond {
		return func() bool { return true }
	}
	return lazy{}.AfterFunc(d, f)
}

func TestATaskThatCrashesOnAClaimDoesNotBlockItsQueue(t *testing.T) {
	p := newPoison("Worker:w")
	th := start(t, actors.Config{Store: model.New(model.Options{}), Host: actors.Host{Probe: p.probe}})
	version := th.publish(t, queueOf("s"))
	bad := th.begin(t, version, `{}`)
	good := th.begin(t, version, `{}`)
	p.task.Store(bad)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := th.Poll(ctx, engine.Poll{Worker: "w", Services: []string{"s"}, Wait: patience})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, good, got[0].Job.Task)
}

func TestAPollEndsOnTimeIfItsOnlyTaskCrashes(t *testing.T) {
	p := newPoison("Worker:w")
	th := start(t, actors.Config{Store: model.New(model.Options{}), Host: actors.Host{Probe: p.probe, Clock: pauseless{}}})
	p.task.Store(th.begin(t, th.publish(t, queueOf("s")), `{}`))
	require.Empty(t, th.poll(t, 50*time.Millisecond, 1, "s"))
	require.EqualValues(t, 1, p.crashes.Load())
}

func TestCommandsDoNotShortenThePauseAfterACrash(t *testing.T) {
	p := newPoison("Key:k")
	th := start(t, actors.Config{Store: model.New(model.Options{}), Host: actors.Host{Probe: p.probe, Clock: pauseless{}}})
	id := th.begin(t, th.publish(t, queueOf("s")), `{}`)
	p.task.Store(id)
	crash := flow.Signal{Key: "k", Value: []byte(`1`)}
	require.Equal(t, flow.Busy, flow.ErrorKindOf(th.Do(t.Context(), id, crash, "")))
	require.Eventually(t, func() bool { return th.Stats().Actors["task"] == 0 }, patience, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() { _ = th.Do(ctx, id, crash, "") })
	}
	require.Eventually(t, func() bool { return th.Stats().Messages == 50 }, patience, time.Millisecond)
	// This passes the mailbox of all tasks after them: when it is answered, they have been
	// processed.
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(th.Do(t.Context(), "nobody", flow.Cancel{}, "")))
	require.EqualValues(t, 1, p.crashes.Load())
	cancel()
	asking.Wait()
}

func TestAPauseIsNotEndedByAnEarlierOne(t *testing.T) {
	p, clock := newPoison("Key:bad"), newCatching(200*time.Millisecond)
	c := newCircuit(nil)
	cfg := actors.Config{Host: actors.Host{Probe: p.probe, Clock: clock}}
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	b := c.join(t, actors.Config{})
	id := a.begin(t, a.publish(t, queueOf("s")), `{}`)
	p.task.Store(id)
	bad, claim := flow.Signal{Key: "bad", Value: []byte(`1`)},
		flow.Claim{Address: flow.Address{Node: "nowhere", Visit: 1, Attempt: 1}, Worker: "w"}
	require.Equal(t, flow.Busy, flow.ErrorKindOf(a.Do(t.Context(), id, bad, "")))
	first := clock.next(t)
	c.move(t, b, shardOf(id)...)
	c.move(t, a, shardOf(id)...)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(a.Do(t.Context(), id, bad, "")))
	second := clock.next(t)
	first()
	require.Equal(t, flow.Busy, flow.ErrorKindOf(a.Do(t.Context(), id, claim, "")), "it is paused yet")
	second()
	require.NotEqual(t, flow.Busy, flow.ErrorKindOf(a.Do(t.Context(), id, claim, "")))
}

func TestACrashedTaskAcceptsCommandsAfterItsPause(t *testing.T) {
	p := newPoison("Key:bad")
	th := start(t, actors.Config{Store: model.New(model.Options{}), Host: actors.Host{Probe: p.probe}})
	id := th.begin(t, th.publish(t, queueOf("s")), `{}`)
	p.task.Store(id)
	require.Error(t, th.Do(t.Context(), id, flow.Signal{Key: "bad", Value: []byte(`1`)}, ""))
	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "good", Value: []byte(`1`)}, ""))
	require.Len(t, th.poll(t, patience, 1, "s"), 1)
}
