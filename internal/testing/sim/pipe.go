package sim

import (
	"errors"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

// workerStream is the stream between a worker and its member. Messages arrive in order, after a
// delay. When one end closes, the other end may notice only because no more messages arrive.
type workerStream struct {
	d    *attachedWorker
	a    *simMember
	up   messageQueue[*attach.FromWorker]
	down messageQueue[*attach.ToWorker]

	welcomed bool // there is a session, of which the worker may not know yet
	hungUp   bool // the member's end is closed
	cut      bool // the worker's end is closed …
	noticed  bool // … and the member is notified
	overAt   time.Duration
}

var errStream = errors.New("sim: the stream broke")

// dialMember opens a stream to a member.
func (d *attachedWorker) dialMember(a *simMember) *workerStream {
	p := &workerStream{d: d, a: a, up: messageQueue[*attach.FromWorker]{simRun: d.simRun, h: a.h},
		down: messageQueue[*attach.ToWorker]{simRun: d.simRun, h: a.h}}
	d.w.startCoroutine(a.h, "attached", func() {
		if err := a.sessions.Serve(d.ctx, p); err != nil {
			d.w.addTrace("%s refuses %s: %v", a.h.name, d.name, err)
		}
		p.HangUp()
	})
	return p
}

// Receive, Send and HangUp are the member's end.
func (p *workerStream) Receive() (*attach.FromWorker, error) {
	p.d.w.parkUntil(func() bool { return p.isOver() || p.up.hasArrived() || p.noticed && p.up.isEmpty() })
	if p.isOver() || !p.up.hasArrived() {
		return nil, errStream
	}
	m := p.up.takeMessage()
	if h := m.GetHello(); h != nil && p.d.options.Greedy {
		h.Credits++
	}
	return m, nil
}

// unread is the number of messages that may be in flight to a worker before the member has to wait.
const unread = 5

func (p *workerStream) Send(m *attach.ToWorker) error {
	p.welcomed = p.welcomed || m.GetWelcome() != nil
	for _, job := range m.GetJobs() {
		if task, at, err := flow.ParseJobID(job.GetId()); err == nil {
			p.d.check.handedOver(task, at)
		}
	}
	p.d.w.parkUntil(func() bool { return p.isOver() || p.noticed || len(p.down.all) < unread })
	if p.isOver() || p.noticed {
		return errStream
	}
	if !p.cut {
		p.down.enqueueMessage(m)
	}
	return nil
}

func (p *workerStream) HangUp() {
	if !p.hungUp {
		p.hungUp, p.overAt = true, p.d.w.now
	}
}

// isOver reports whether the member has finished with the stream.
func (p *workerStream) isOver() bool { return p.hungUp || p.a.h.dead }

// receiveMessage returns the next message for the worker, or nil if none arrived until the given
// time. It returns false at the end of the stream.
func (p *workerStream) receiveMessage(until time.Duration) (*attach.ToWorker, bool) {
	w := p.d.w
	stop := w.callAfter(nil, max(until-w.now, 0), func() {})
	defer stop()
	gone := func() bool { return p.cut || p.a.h.dead || p.hungUp && p.down.isEmpty() }
	w.parkUntil(func() bool { return gone() || p.down.hasArrived() || w.now >= until })
	switch {
	case gone():
		return nil, false
	case p.down.hasArrived():
		return p.down.takeMessage(), true
	}
	return nil, true
}

// sendMessage sends a message of the worker, unless the stream is over.
func (p *workerStream) sendMessage(m *attach.FromWorker) {
	if !p.cut && !p.isOver() {
		p.up.enqueueMessage(m)
	}
}

// closeStream closes the worker's end. Its last messages may get lost, unless it closes properly.
func (p *workerStream) closeStream(noticed, properly bool) {
	if p.cut {
		return
	}
	p.cut, p.noticed = true, noticed
	if !p.hungUp {
		p.overAt = p.d.w.now
	}
	if !properly {
		p.up.dropUnarrived()
	}
	if p.a.fickle != nil {
		p.a.fickle.dropJobs(p.d)
	}
}

// messageQueue holds messages in flight, in order.
type messageQueue[M any] struct {
	*simRun
	h   *host // host of the member's end
	all []queuedMessage[M]
}

type queuedMessage[M any] struct {
	at time.Duration
	m  M
}

func (l *messageQueue[M]) enqueueMessage(m M) {
	at := l.w.now
	if l.w.drawChance(500) {
		at += l.w.upTo(l.w.faults.latency / 4)
	}
	if n := len(l.all); n > 0 {
		at = max(at, l.all[n-1].at)
	}
	if at > l.w.now {
		l.w.callAfter(nil, at-l.w.now, func() {})
	}
	l.all = append(l.all, queuedMessage[M]{at, m})
}

func (l *messageQueue[M]) isEmpty() bool { return len(l.all) == 0 }

// hasArrived reports whether a message has arrived. None arrives at a host that is cut off.
func (l *messageQueue[M]) hasArrived() bool {
	return len(l.all) > 0 && l.all[0].at <= l.w.now && !l.h.cutFromPeers
}

func (l *messageQueue[M]) takeMessage() M {
	m := l.all[0].m
	l.all = l.all[1:]
	return m
}

// dropUnarrived drops some of the messages that have not arrived.
func (l *messageQueue[M]) dropUnarrived() {
	for i := range l.all {
		if l.all[i].at > l.w.now || l.w.drawChance(300) {
			l.all = l.all[:i]
			return
		}
	}
}
