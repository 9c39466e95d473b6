package sim

import (
	"errors"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/flow"
)

// pipe is the stream between a worker and the member it is attached to. What is sent arrives in its order, after a while. When one
// end is over the other one may notice only because nothing comes any more.
type pipe struct {
	d    *hand
	a    *actor
	up   letters[*attach.FromWorker]
	down letters[*attach.ToWorker]

	welcomed bool // there is a session, which the worker may not have heard yet
	hungUp   bool // the member's end is over
	cut      bool // the worker's is …
	noticed  bool // … and the member hears of that
	overAt   time.Duration
}

var errStream = errors.New("sim: the stream broke")

// dial has a member serve a stream.
func (d *hand) dial(a *actor) *pipe {
	p := &pipe{d: d, a: a, up: letters[*attach.FromWorker]{stage: d.stage, h: a.h}, down: letters[*attach.ToWorker]{stage: d.stage, h: a.h}}
	d.w.launch(a.h, "attached", func() {
		if err := a.sessions.Serve(d.ctx, p); err != nil {
			d.w.say("%s refuses %s: %v", a.h.name, d.name, err)
		}
		p.HangUp()
	})
	return p
}

// Receive, Send and HangUp are the member's end.
func (p *pipe) Receive() (*attach.FromWorker, error) {
	p.d.w.park(func() bool { return p.over() || p.up.ready() || p.noticed && p.up.empty() })
	if p.over() || !p.up.ready() {
		return nil, errStream
	}
	m := p.up.take()
	if h := m.GetHello(); h != nil && p.d.options.Greedy {
		h.Credits++
	}
	return m, nil
}

// unread is how much may be on its way to a worker before the member has to wait.
const unread = 5

func (p *pipe) Send(m *attach.ToWorker) error {
	p.welcomed = p.welcomed || m.GetWelcome() != nil
	for _, job := range m.GetJobs() {
		if task, at, err := flow.ParseJobID(job.GetId()); err == nil {
			p.d.check.handedOver(task, at)
		}
	}
	p.d.w.park(func() bool { return p.over() || p.noticed || len(p.down.all) < unread })
	if p.over() || p.noticed {
		return errStream
	}
	if !p.cut {
		p.down.send(m)
	}
	return nil
}

func (p *pipe) HangUp() {
	if !p.hungUp {
		p.hungUp, p.overAt = true, p.d.w.now
	}
}

// over says whether the member does nothing more with the stream.
func (p *pipe) over() bool { return p.hungUp || p.a.h.dead }

// hear is what the worker reads next; nil = nothing yet, until then. It is false when there is nothing more.
func (p *pipe) hear(until time.Duration) (*attach.ToWorker, bool) {
	w := p.d.w
	stop := w.after(nil, max(until-w.now, 0), func() {})
	defer stop()
	gone := func() bool { return p.cut || p.a.h.dead || p.hungUp && p.down.empty() }
	w.park(func() bool { return gone() || p.down.ready() || w.now >= until })
	switch {
	case gone():
		return nil, false
	case p.down.ready():
		return p.down.take(), true
	}
	return nil, true
}

// tell sends what the worker says, unless the stream is over.
func (p *pipe) tell(m *attach.FromWorker) {
	if !p.cut && !p.over() {
		p.up.send(m)
	}
}

// end is the end of the worker's end. What it has said last may get lost, unless it hangs up as one does.
func (p *pipe) end(noticed, properly bool) {
	if p.cut {
		return
	}
	p.cut, p.noticed = true, noticed
	if !p.hungUp {
		p.overAt = p.d.w.now
	}
	if !properly {
		p.up.lose()
	}
	if p.a.fickle != nil {
		p.a.fickle.broke(p.d)
	}
}

// letters are on their way, in their order.
type letters[M any] struct {
	*stage
	h   *host // of the member at one end
	all []letter[M]
}

type letter[M any] struct {
	at time.Duration
	m  M
}

func (l *letters[M]) send(m M) {
	at := l.w.now
	if l.w.chance(500) {
		at += l.w.upTo(l.w.weather.latency / 4)
	}
	if n := len(l.all); n > 0 {
		at = max(at, l.all[n-1].at)
	}
	if at > l.w.now {
		l.w.after(nil, at-l.w.now, func() {})
	}
	l.all = append(l.all, letter[M]{at, m})
}

func (l *letters[M]) empty() bool { return len(l.all) == 0 }

// ready says whether one has arrived. None does at a host that is cut off.
func (l *letters[M]) ready() bool { return len(l.all) > 0 && l.all[0].at <= l.w.now && !l.h.apart }

func (l *letters[M]) take() M {
	m := l.all[0].m
	l.all = l.all[1:]
	return m
}

// lose is what becomes of those that have not arrived.
func (l *letters[M]) lose() {
	for i := range l.all {
		if l.all[i].at > l.w.now || l.w.chance(300) {
			l.all = l.all[:i]
			return
		}
	}
}
