package actors_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// askedElsewhere polls a member, and the caller leaves while a job of another member's task is
// being claimed. The answer to the claim comes when let is called.
func askedElsewhere(t *testing.T, c *circuit, at, owner *harness) (let func()) {
	claiming, release := make(chan struct{}), make(chan struct{})
	c.lines[at].after = func(o engine.Order) {
		if _, ok := o.Command.(flow.Claim); ok {
			close(claiming)
			<-release
		}
	}
	c.beginAll(t, []*harness{owner}, owner.publish(t, queueOf("x")), 1)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := at.Poll(ctx, engine.Poll{Worker: "w", Services: []string{"x"}, Wait: time.Hour, Max: 1})
		gone <- err
	}()
	<-claiming
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	return func() { close(release) }
}

func TestAStoppingMemberReturnsLateClaims(t *testing.T) {
	c := newCircuit(nil)
	cfg := actors.Config{Visibility: time.Hour}
	a, b := c.join(t, cfg), c.join(t, cfg)
	c.give(b, persistence.AllShards()...)
	let := askedElsewhere(t, c, a, b)
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop(t.Context()) }()
	require.Eventually(t, func() bool { return a.Ready() != nil }, patience, time.Millisecond)
	let()
	require.NoError(t, <-stopped)
	require.Len(t, b.poll(t, patience, 1, "x"), 1)
}

func TestAMemberReturnsClaimsOfOthersWhileItsTasksRest(t *testing.T) {
	committing, release, resting := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var committed, rests atomic.Bool
	c := newCircuit(faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		if batch[0].Seq == 2 && !committed.Swap(true) {
			close(committing)
			return faulty.Hold(release)
		}
		return faulty.Fault{}
	}}))
	cfg := withFunc(increment)
	cfg.Visibility, cfg.IdleAfter = time.Hour, time.Hour
	cfg.Host.Probe = func(_ string, message any) {
		if fmt.Sprintf("%T", message) == "actors.restRequest" && !rests.Swap(true) {
			close(resting)
		}
	}
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()[:512]...)
	b := c.join(t, actors.Config{Visibility: time.Hour})
	c.give(b, persistence.AllShards()[512:]...)
	c.beginAll(t, []*harness{a}, a.publish(t, oneJob), 1)
	<-committing // its task cannot rest until that is stored
	let := askedElsewhere(t, c, a, b)
	stopped := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { stopped <- a.Stop(ctx) }()
	<-resting
	let()
	require.Len(t, b.poll(t, patience, 1, "x"), 1)
	close(release)
	require.NoError(t, <-stopped)
}
