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

// peerLinks are one member's way to the others: what is sent may take long, get lost, or be carried
// out and not answered. A question may also be asked twice.
type peerLinks struct {
	st *simRun
	h  *host
}

var errCut = errors.New("sim: the line broke")

func awayError(to persistence.MemberRow, why error) error {
	return fmt.Errorf("%w: %s: %w", cluster.ErrAway, to.Name, why)
}

// urlOf is where a host is reached.
func urlOf(h *host) string { return "sim://" + h.name }

// findPeer finds the incarnation that is meant, where it is said to be; nil when nobody answers
// there.
func (l *peerLinks) findPeer(to persistence.MemberRow) *simMember {
	for _, a := range l.st.allMembers {
		if a.Incarnation() == to.Incarnation && urlOf(a.h) == to.URL && !a.h.dead && !l.h.dead && !a.h.cutFromPeers && !l.h.cutFromPeers {
			return a
		}
	}
	return nil
}

// delayMessage is the way there or back. A host that is dead neither sends nor hears.
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

// lostError is why there is no answer.
func (l *peerLinks) lostError(ctx context.Context, to persistence.MemberRow) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return awayError(to, errCut)
}

// startAnswer has a member answer on its host, as long as the asker waits.
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

// pendingAnswer is what a member has answered; nothing as long as it has not.
type pendingAnswer struct{ bytes []byte }

// askAgain brings a question once more, some time. What was done is not to be done again, and is
// answered alike.
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

// deliverLater has somebody hear what was told, after a while.
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

// Keep and Close: there is nothing that would have to end.
func (l *peerLinks) Keep(func(string) bool) {}
func (l *peerLinks) Close()                 {}
