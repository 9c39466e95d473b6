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

// peerLinks are a member's links to the others. A message may be slow, get lost, or be handled
// without its answer arriving. A request may also arrive twice.
type peerLinks struct {
	st *simRun
	h  *host
}

var errCut = errors.New("sim: the line broke")

func awayError(to persistence.MemberRow, why error) error {
	return fmt.Errorf("%w: %s: %w", cluster.ErrAway, to.Name, why)
}

// urlOf returns the address of a host.
func urlOf(h *host) string { return "sim://" + h.name }

// findPeer returns the member with the given incarnation and address; nil if none answers there.
func (l *peerLinks) findPeer(to persistence.MemberRow) *simMember {
	for _, a := range l.st.allMembers {
		if a.Incarnation() == to.Incarnation && urlOf(a.h) == to.URL && !a.h.dead && !l.h.dead && !a.h.cutFromPeers && !l.h.cutFromPeers {
			return a
		}
	}
	return nil
}

// delayMessage simulates the time of one direction of a message. A dead host neither sends nor
// receives.
func (l *peerLinks) delayMessage(ctx context.Context, lost int) bool {
	w := l.st.w
	until := w.now
	if w.drawFault(w.faults.stalls) {
		until += w.upTo(4 * time.Second)
	} else if w.drawChance(500) {
		until += w.upTo(w.faults.latency / 4)
	}
	w.callAfter(nil, until-w.now, func() {})
	w.parkUntil(func() bool { return w.now >= until || ctx.Err() != nil || l.h.dead })
	return ctx.Err() == nil && !l.h.dead && !w.drawFault(lost)
}

func (l *peerLinks) Ask(ctx context.Context, to persistence.MemberRow, q engine.Message) (engine.Message, error) {
	w := l.st.w
	question, err := engine.Marshal(l.st.onTheWay(q))
	if err != nil {
		return nil, err
	}
	if !l.delayMessage(ctx, w.faults.lost) {
		return nil, l.lostError(ctx, to)
	}
	other := l.findPeer(to)
	if other == nil {
		return nil, awayError(to, errCut)
	}
	if errands, ok := q.(*engine.Errands); ok {
		l.st.counts.Passed += len(*errands)
	}
	twice := w.drawFault(w.faults.repeats)
	answer := l.st.startAnswer(ctx, other, question)
	w.parkUntil(func() bool { return len(answer.bytes) > 0 || ctx.Err() != nil || l.findPeer(to) == nil })
	if len(answer.bytes) == 0 || !l.delayMessage(ctx, w.faults.unknown) {
		return nil, l.lostError(ctx, to)
	}
	if twice {
		l.askAgain(q, other, question, answer)
	}
	m, err := engine.Unmarshal(answer.bytes)
	if r, refused := m.(*engine.Refusal); refused {
		return nil, r.Err
	}
	return m, err
}

// lostError returns the reason why there is no answer.
func (l *peerLinks) lostError(ctx context.Context, to persistence.MemberRow) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return awayError(to, errCut)
}

// startAnswer lets a member answer on its host while the caller waits.
func (st *simRun) startAnswer(ctx context.Context, a *simMember, question []byte) *pendingAnswer {
	answer := &pendingAnswer{}
	st.w.startCoroutine(a.h, "answer", func() {
		b, err := engine.Marshal(cluster.Answer(ctx, a.Member, question))
		if err != nil {
			st.w.failRun("an answer cannot be sent: %v", err)
		}
		answer.bytes = b
	})
	return answer
}

// pendingAnswer is the answer of a member; empty until it has answered.
type pendingAnswer struct{ bytes []byte }

// askAgain delivers a request a second time later. It must not be executed twice and must get an
// equal answer.
func (l *peerLinks) askAgain(q engine.Message, other *simMember, question []byte, first *pendingAnswer) {
	w := l.st.w
	w.startCoroutine(l.st.outside, "again", func() {
		w.sleepFor(w.upTo(2 * time.Second))
		if other.h.dead {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		second := l.st.startAnswer(ctx, other, question)
		until := w.now + 20*time.Second
		w.callAfter(nil, 20*time.Second, func() {})
		w.parkUntil(func() bool { return len(second.bytes) > 0 || w.now >= until || other.h.dead })
		if orders, ok := q.(*engine.Orders); ok && len(second.bytes) > 0 {
			l.st.check.checkSameAnswers(*orders, first.bytes, second.bytes)
		}
	})
}

func (l *peerLinks) Tell(to persistence.MemberRow, m engine.Message) {
	w := l.st.w
	if c, ok := m.(*engine.Credits); ok {
		l.h.credits.applyCredits(c)
	}
	told, err := engine.Marshal(l.st.distortCredits(m))
	if err != nil {
		w.failRun("%T cannot be sent: %v", m, err)
	}
	if w.drawFault(w.faults.lost) {
		return
	}
	l.deliverLater(to, told, w.upTo(w.faults.latency/4))
	if w.drawFault(w.faults.repeats) {
		l.deliverLater(to, told, w.upTo(2*time.Second))
	}
}

// deliverLater delivers a one-way message after a while.
func (l *peerLinks) deliverLater(to persistence.MemberRow, told []byte, after time.Duration) {
	l.st.w.callAfter(nil, after, func() {
		if other := l.findPeer(to); other != nil {
			other.h.addRun(func() {
				if !other.h.dead {
					cluster.Hear(other.Member, told)
				}
			})
		}
	})
}

func (l *peerLinks) Watch(ctx context.Context, to persistence.MemberRow, q engine.Follow) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		other := l.findPeer(to)
		if other == nil || !l.delayMessage(ctx, l.st.w.faults.lost) {
			yield(engine.Row{}, l.lostError(ctx, to))
			return
		}
		rows := l.st.w.streamRows(ctx, other.h, func(ctx context.Context) iter.Seq2[engine.Row, error] {
			return other.Member.Watch(ctx, q.Task, q.After)
		})
		for row, err := range rows {
			if errors.Is(err, errDown) {
				err = l.lostError(ctx, to)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Keep and Close do nothing, because simulated links need no clean-up.
func (l *peerLinks) Keep(func(string) bool) {}
func (l *peerLinks) Close()                 {}
