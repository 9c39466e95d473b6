package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAllCallersOfACrashedTaskActorAreAnswered(t *testing.T) {
	const n = 5
	var armed atomic.Bool
	crash, reached := make(chan struct{}), make(chan struct{})
	th := start(t, actors.Config{Host: actors.Host{Probe: func(kind string, message any) {
		if kind == "task" && fmt.Sprintf("%T", message) == "*actors.taskCommand" && armed.Swap(false) {
			close(reached)
			<-crash
			panic("a planted crash")
		}
	}}})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	armed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answers := make(chan error, n)
	ask := func() { answers <- th.Do(ctx, id, flow.Signal{Key: "k", Value: json.RawMessage(`1`)}, "") }
	go ask()
	<-reached
	for range n - 1 {
		go ask()
	}
	require.Eventually(t, func() bool { return th.Stats().Messages == n }, patience, time.Millisecond)
	// This passes the mailbox of all tasks after them: when it is answered, they are in the task's
	// mailbox.
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(th.Do(ctx, "nobody", flow.Cancel{}, "")))
	close(crash)
	for range n {
		if err := <-answers; err != nil {
			require.Equal(t, flow.Busy, flow.ErrorKindOf(err), "%v", err)
		}
	}
	require.NoError(t, th.Do(ctx, id, flow.Signal{Key: "ok", Value: json.RawMessage(`true`)}, ""))
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
}

func TestAReportReachesTheNextActorAfterACrash(t *testing.T) {
	var crash atomic.Bool
	var calls atomic.Int64
	release := make(chan struct{})
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		calls.Add(1)
		<-release
		return increment(ctx, j)
	})
	cfg.Host.Probe = func(kind string, message any) {
		if kind == "task" && fmt.Sprintf("%T", message) == "*actors.taskCommand" && crash.Swap(false) {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, chainOfThree), `{"n":1}`)
	require.Eventually(t, func() bool { return calls.Load() == 1 }, patience, time.Millisecond)
	crash.Store(true)
	note := flow.Signal{Key: "k", Value: json.RawMessage(`1`)}
	require.Equal(t, flow.Busy, flow.ErrorKindOf(th.Do(t.Context(), id, note, "")))
	require.Eventually(t, func() bool { return th.Do(t.Context(), id, note, "") == nil }, patience, time.Millisecond)
	close(release)
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	require.EqualValues(t, 3, calls.Load(), "no job was carried out twice")
}

func TestReportsSurviveACrashOfTheTaskActor(t *testing.T) {
	const n = 20
	var crash atomic.Bool
	g := newGates()
	held := make(chan struct{})
	cfg := withFunc(func(ctx context.Context, j flow.Job) flow.Report {
		r := g.carry(ctx, j)
		if j.Unit >= n/2 {
			<-held
		}
		return r
	})
	cfg.Host.Clock = slow{} // so the reports of the first half are in the inbox of their step
	cfg.Host.Probe = func(kind string, message any) {
		if kind == "task" && fmt.Sprintf("%T", message) == "*actors.taskCommand" && crash.Swap(false) {
			panic("a planted crash")
		}
	}
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, overAList), listOf(n))
	g.await(t, n)
	crash.Store(true)
	note := flow.Signal{Key: "k", Value: json.RawMessage(`1`)}
	require.Equal(t, flow.Busy, flow.ErrorKindOf(th.Do(t.Context(), id, note, "")))
	close(held) // the second half reports while there is no actor, or another one
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	_, again := g.counts()
	require.Zero(t, again)
}

func TestAJobWithARefusedReportIsNotRepeated(t *testing.T) {
	var calls atomic.Int64
	cfg := withFunc(func(context.Context, flow.Job) flow.Report {
		calls.Add(1)
		return flow.Report{Output: json.RawMessage(`"unbearable"`)}
	})
	cfg.Store = refusing("unbearable")
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, oneJob), `{}`)
	require.Equal(t, flow.TaskFailed, th.ended(t, id).State.Status)
	stopSoon(t, th)
	require.EqualValues(t, 1, calls.Load())
}

// refusing is a store that refuses events containing a text.
func refusing(text string) persistence.Store {
	return faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		for _, c := range batch {
			if bytes.Contains(c.Events, []byte(text)) {
				return faulty.Fault{Before: func(context.Context) error { return persistence.ErrRefused }}
			}
		}
		return faulty.Fault{}
	}})
}

// over is a tracker whose jobs have ended with an output.
type over string

func (o over) Poll(context.Context, flow.External) (flow.ExternalStatus, error) {
	return flow.ExternalStatus{Ended: true, Output: json.RawMessage(o)}, nil
}

func (over) Cancel(context.Context, flow.External) error { return nil }

func TestARefusedExternalOutputFailsItsAttempt(t *testing.T) {
	for name, data := range map[string]string{"what it comes to": `1`, "what is known of it": `"unbearable"`} {
		t.Run(name, func(t *testing.T) {
			cfg := withFunc(func(context.Context, flow.Job) flow.Report {
				return flow.Report{Deferred: []flow.External{{Service: "s", ID: "x", Data: json.RawMessage(data)}}}
			})
			cfg.Store, cfg.Trackers = refusing("unbearable"), map[string]actors.Tracker{"s": over(`"unbearable"`)}
			th := start(t, cfg)
			id := th.begin(t, th.publish(t, oneJob), `{}`)
			require.Equal(t, flow.TaskFailed, th.ended(t, id).State.Status)
			stopSoon(t, th)
		})
	}
}

func TestAnExternalOutputThatIsNotJSONFailsItsAttempt(t *testing.T) {
	for name, output := range map[string]string{"cut short": `{"a":`, "no text": "\"\xff\""} {
		t.Run(name, func(t *testing.T) {
			cfg := withFunc(func(context.Context, flow.Job) flow.Report {
				return flow.Report{Deferred: []flow.External{{Service: "s", ID: "x"}}}
			})
			cfg.Trackers = map[string]actors.Tracker{"s": over(output)}
			th := start(t, cfg)
			id := th.begin(t, th.publish(t, oneJob), `{}`)
			ended := th.ended(t, id).State
			require.Equal(t, flow.TaskFailed, ended.Status)
			require.Contains(t, ended.Error, "the tracker of s gave an output that is no JSON in UTF-8")
			stopSoon(t, th)
		})
	}
}
