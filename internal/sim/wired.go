package sim

import (
	"context"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
)

// wired is a member that is asked as other members would ask it: questions and answers travel as bytes.
type wired struct{ *actors.Member }

// sent is what arrives of a message.
func sent[M engine.Message](m M) M {
	b, err := engine.Marshal(m)
	if err != nil {
		panic(err) // a simulation sends nothing that cannot be sent
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
	return sent(&engine.Refusal{Err: err}).Err
}

func (w wired) StartTask(ctx context.Context, t engine.NewTask) (engine.Started, error) {
	started, err := w.Member.StartTask(ctx, *sent(&t))
	return *sent(&started), sentError(err)
}

func (w wired) Do(ctx context.Context, o engine.Order) (engine.Outcome, error) {
	out, err := w.Member.Do(ctx, (*sent(&engine.Orders{o}))[0])
	return (*sent(&engine.Outcomes{out}))[0], sentError(err)
}

func (w wired) DoAll(ctx context.Context, orders engine.Orders) (engine.Outcomes, error) {
	outcomes, err := w.Member.DoAll(ctx, *sent(&orders))
	return *sent(&outcomes), sentError(err)
}

func (w wired) Poll(ctx context.Context, p engine.Poll) (engine.Jobs, error) {
	jobs, err := w.Member.Poll(ctx, *sent(&p))
	return *sent(&jobs), sentError(err)
}
