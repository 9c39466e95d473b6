package sim

import (
	"context"
	"iter"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// remoteEngine calls a member as an external program would: requests and answers are encoded, and
// the request is handled on the member's host. If the member crashes meanwhile, there is no answer.
type remoteEngine struct {
	engine.Engine
	h *host // nil means the caller's host
}

// roundTrip encodes and decodes a message.
func roundTrip[M engine.Message](m M) M {
	b, err := engine.Marshal(m)
	if err != nil {
		panic(err) // all simulated messages can be encoded
	}
	arrived, err := engine.Unmarshal(b)
	if err != nil {
		panic(err)
	}
	return arrived.(M)
}

func sentError(err error) error {
	if err == nil {
		return nil
	}
	return roundTrip(&engine.Refusal{Err: err}).Err
}

// runOn runs a function on a host for a caller elsewhere.
func runOn[A any](ctx context.Context, h *host, do func() (A, error)) (A, error) {
	if h == nil {
		return do()
	}
	answer := make(chan A, 1) // never read if the host is dead
	var err error
	h.w.startCoroutine(h, "request", func() {
		var a A
		a, err = do()
		answer <- a
	})
	h.w.parkUntil(func() bool { return len(answer) > 0 || ctx.Err() != nil && h.frozen || h.dead })
	var none A
	switch {
	case h.dead:
		return none, errDown
	case len(answer) == 0:
		return none, ctx.Err()
	}
	return <-answer, err
}

// countRequest counts a request for which a stopping member waits.
func (w remoteEngine) countRequest() (over func()) {
	if w.h == nil {
		return func() {}
	}
	w.h.requests++
	return func() { w.h.requests-- }
}

func (w remoteEngine) StartTask(ctx context.Context, t engine.NewTask) (engine.Started, error) {
	defer w.countRequest()()
	started, err := runOn(ctx, w.h, func() (engine.Started, error) { return w.Engine.StartTask(ctx, *roundTrip(&t)) })
	return *roundTrip(&started), sentError(err)
}

func (w remoteEngine) Do(ctx context.Context, o engine.Order) (engine.Outcome, error) {
	defer w.countRequest()()
	out, err := runOn(ctx, w.h, func() (engine.Outcome, error) { return w.Engine.Do(ctx, (*roundTrip(&engine.Orders{o}))[0]) })
	return (*roundTrip(&engine.Outcomes{out}))[0], sentError(err)
}

func (w remoteEngine) DoAll(ctx context.Context, orders engine.Orders) (engine.Outcomes, error) {
	defer w.countRequest()()
	outcomes, err := runOn(ctx, w.h, func() (engine.Outcomes, error) { return w.Engine.DoAll(ctx, *roundTrip(&orders)) })
	return *roundTrip(&outcomes), sentError(err)
}

func (w remoteEngine) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	defer w.countRequest()()
	done, err := runOn(ctx, w.h, func() (engine.Exchanged, error) { return w.Engine.Exchange(ctx, *roundTrip(&x)) })
	return *roundTrip(&done), sentError(err)
}

func (w remoteEngine) Poll(ctx context.Context, p engine.Poll) (engine.Jobs, error) {
	jobs, err := runOn(ctx, w.h, func() (engine.Jobs, error) { return w.Engine.Poll(ctx, *roundTrip(&p)) })
	return *roundTrip(&jobs), sentError(err)
}

func (w remoteEngine) Await(ctx context.Context, task string) (flow.TaskStatus, error) {
	return runOn(ctx, w.h, func() (flow.TaskStatus, error) { return w.Engine.Await(ctx, task) })
}

func (w remoteEngine) Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error] {
	if w.h == nil {
		return w.Engine.Watch(ctx, task, after)
	}
	return w.h.w.streamRows(ctx, w.h, func(ctx context.Context) iter.Seq2[engine.Row, error] { return w.Engine.Watch(ctx, task, after) })
}

// streamRows reads rows on a host for a caller elsewhere.
func (w *simWorld) streamRows(ctx context.Context, h *host,
	rows func(context.Context) iter.Seq2[engine.Row, error]) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		type told struct {
			engine.Row
			err error
		}
		var queue []told
		over := false
		w.startCoroutine(h, "stream", func() {
			defer func() { over = true }()
			for row, err := range rows(ctx) {
				queue = append(queue, told{row, err})
				if ctx.Err() != nil {
					return
				}
			}
		})
		for {
			w.parkUntil(func() bool { return len(queue) > 0 || over || h.dead || ctx.Err() != nil })
			switch {
			case len(queue) > 0:
				next := queue[0]
				queue = queue[1:]
				if !yield(next.Row, next.err) {
					return
				}
			case h.dead && !over:
				yield(engine.Row{}, errDown)
				return
			default:
				return
			}
		}
	}
}
