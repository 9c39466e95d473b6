package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// lines are one member's way to the others: what is sent may take long, get lost, or be carried out and not answered. A
// question may also be asked twice.
type lines struct {
	st *stage
	h  *host
}

var errCut = errors.New("sim: the line broke")

func away(to persistence.MemberRow, why error) error {
	return fmt.Errorf("%w: %s: %w", cluster.ErrAway, to.Name, why)
}

// urlOf is where a host is reached.
func urlOf(h *host) string { return "sim://" + h.name }

// reach finds the incarnation that is meant, where it is said to be; nil when nobody answers there.
func (l *lines) reach(to persistence.MemberRow) *actor {
	for _, a := range l.st.all {
		if a.Incarnation() == to.Incarnation && urlOf(a.h) == to.URL && !a.h.dead && !l.h.dead && !a.h.apart && !l.h.apart {
			return a
		}
	}
	return nil
}

// travel is the way there or back. A host that is dead neither sends nor hears.
func (l *lines) travel(ctx context.Context, lost int) bool {
	w := l.st.w
	until := w.now
	if w.mishap(w.weather.stalls) {
		until += w.upTo(4 * time.Second)
	} else if w.chance(500) {
		until += w.upTo(w.weather.latency / 4)
	}
	w.after(nil, until-w.now, func() {})
	w.park(func() bool { return w.now >= until || ctx.Err() != nil || l.h.dead })
	return ctx.Err() == nil && !l.h.dead && !w.mishap(lost)
}

func (l *lines) Ask(ctx context.Context, to persistence.MemberRow, q engine.Message) (engine.Message, error) {
	w := l.st.w
	question, err := engine.Marshal(l.st.onTheWay(q))
	if err != nil {
		return nil, err
	}
	if !l.travel(ctx, w.weather.lost) {
		return nil, l.lost(ctx, to)
	}
	other := l.reach(to)
	if other == nil {
		return nil, away(to, errCut)
	}
	if errands, ok := q.(*engine.Errands); ok {
		l.st.seen.Passed += len(*errands)
	}
	twice := w.mishap(w.weather.repeats)
	answer := l.st.answer(ctx, other, question)
	w.park(func() bool { return len(answer.bytes) > 0 || ctx.Err() != nil || l.reach(to) == nil })
	if len(answer.bytes) == 0 || !l.travel(ctx, w.weather.unknown) {
		return nil, l.lost(ctx, to)
	}
	if twice {
		l.again(q, other, question, answer)
	}
	m, err := engine.Unmarshal(answer.bytes)
	if r, refused := m.(*engine.Refusal); refused {
		return nil, r.Err
	}
	return m, err
}

// lost is why there is no answer.
func (l *lines) lost(ctx context.Context, to persistence.MemberRow) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return away(to, errCut)
}

// answer has a member answer on its host, as long as the asker waits.
func (st *stage) answer(ctx context.Context, a *actor, question []byte) *answered {
	answer := &answered{}
	st.w.launch(a.h, "answer", func() {
		b, err := engine.Marshal(cluster.Answer(ctx, a.Member, question))
		if err != nil {
			st.w.fail("an answer cannot be sent: %v", err)
		}
		answer.bytes = b
	})
	return answer
}

// answered is what a member has answered; nothing as long as it has not.
type answered struct{ bytes []byte }

// again brings a question once more, some time. What was done is not to be done again, and is answered alike.
func (l *lines) again(q engine.Message, other *actor, question []byte, first *answered) {
	w := l.st.w
	w.launch(l.st.outside, "again", func() {
		w.sleep(w.upTo(2 * time.Second))
		if other.h.dead {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		second := l.st.answer(ctx, other, question)
		until := w.now + 20*time.Second
		w.after(nil, 20*time.Second, func() {})
		w.park(func() bool { return len(second.bytes) > 0 || w.now >= until || other.h.dead })
		if orders, ok := q.(*engine.Orders); ok && len(second.bytes) > 0 {
			l.st.check.alike(*orders, first.bytes, second.bytes)
		}
	})
}

func (l *lines) Tell(to persistence.MemberRow, m engine.Message) {
	w := l.st.w
	if c, ok := m.(*engine.Credits); ok {
		l.h.credits.tell(c)
	}
	told, err := engine.Marshal(l.st.rumor(m))
	if err != nil {
		w.fail("%T cannot be sent: %v", m, err)
	}
	if w.mishap(w.weather.lost) {
		return
	}
	l.arrive(to, told, w.upTo(w.weather.latency/4))
	if w.mishap(w.weather.repeats) {
		l.arrive(to, told, w.upTo(2*time.Second))
	}
}

// arrive has somebody hear what was told, after a while.
func (l *lines) arrive(to persistence.MemberRow, told []byte, after time.Duration) {
	l.st.w.after(nil, after, func() {
		if other := l.reach(to); other != nil {
			other.h.add(func() {
				if !other.h.dead {
					cluster.Hear(other.Member, told)
				}
			})
		}
	})
}

func (l *lines) Watch(ctx context.Context, to persistence.MemberRow, q engine.Follow) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		other := l.reach(to)
		if other == nil || !l.travel(ctx, l.st.w.weather.lost) {
			yield(engine.Row{}, l.lost(ctx, to))
			return
		}
		rows := l.st.w.stream(ctx, other.h, func(ctx context.Context) iter.Seq2[engine.Row, error] {
			return other.Member.Watch(ctx, q.Task, q.After)
		})
		for row, err := range rows {
			if errors.Is(err, errDown) {
				err = l.lost(ctx, to)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Keep and Close: there is nothing that would have to end.
func (l *lines) Keep(func(string) bool) {}
func (l *lines) Close()                 {}
