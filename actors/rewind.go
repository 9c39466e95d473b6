package actors

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Rewind says that the store does not go on where it was: it went back in time, or another server
// has taken over. The member has ended by that.
type Rewind struct {
	// From and To bound, by the store's clock, when what may be lost was confirmed. A zero From is
	// not known.
	From, To time.Time
	// Lost is false when everything that this member was told to be stored is there.
	Lost  bool
	Cause string // for people
}

// renewalRecord is what the last renewal has told. A store that goes on never tells less.
type renewalRecord struct {
	renewals, generation int64
	history              string
	at                   time.Time // by the store's clock; zero = there was no renewal
}

// findRewind returns what a renewal shows of a store that does not go on from the past; nil = it
// does.
func (p *renewalRecord) findRewind(pulse persistence.Pulse, err error) *Rewind {
	fenced := errors.Is(err, persistence.ErrFenced)
	missing := errors.Is(err, persistence.ErrRewound) && pulse.Now.Sub(p.at) < persistence.Forgotten/2
	found := &Rewind{To: pulse.Now, Lost: true}
	switch {
	case p.at.IsZero() || err != nil && !fenced:
		return nil
	case pulse.History != p.history:
		found.From, found.Cause = timeFromMillis(pulse.Kept), "another member has found it"
		if t := pulse.Takeover; t != nil {
			found.Lost, found.Cause = t.Lost, t.Cause
		}
	case missing:
		found.Cause = "the store does not know this member any longer"
	case fenced:
		return nil
	case pulse.Renewals <= p.renewals:
		found.From, found.Cause = timeFromMillis(pulse.Before), "a renewal of this member's lease is not there any longer"
	case pulse.Generation < p.generation:
		found.From, found.Cause = timeFromMillis(pulse.Before), "a change of who owns which tasks is not there any longer"
	default:
		return nil
	}
	return found
}

// recordPulse notes a renewal that shows nothing like that.
func (p *renewalRecord) recordPulse(pulse persistence.Pulse) {
	*p = renewalRecord{pulse.Renewals, pulse.Generation, pulse.History, pulse.Now}
}

// timeFromMillis returns a time of the store's; 0 = it is not known.
func timeFromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// detectRewind notes what a renewal shows of a store that does not go on; nil = it does, or the
// member has none any more.
func (l *lease) detectRewind(pulse persistence.Pulse, err error) *Rewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced || l.givenUp {
		return nil
	}
	l.rewound = l.lastRenewal.findRewind(pulse, err)
	return l.rewound
}

// endHistory ends all incarnations of the history that the store has lost the end of, unless
// another member has done so: none of them writes from what it knew before. One that cannot be
// ended for want of the store notices by itself.
func (l *lease) endHistory(ctx context.Context, r *Rewind) {
	kept := int64(0)
	if !r.From.IsZero() {
		kept = r.From.UnixMilli()
	}
	if err := l.m.store.BeginHistory(ctx, l.lastRenewal.history, kept); err != nil {
		l.m.log.Warn("the members that have lost their store's history could not be ended: each notices by itself", "error", err)
	}
}

// logRewind logs what has become of the store.
func (l *lease) logRewind() {
	r := l.rewound
	if !r.Lost {
		l.m.log.Warn("the store has moved to another server, which has all that this member knows to be stored: the member begins anew",
			"cause", r.Cause, "member", l.m.cfg.Name)
		return
	}
	from := "not known"
	if !r.From.IsZero() {
		from = r.From.UTC().Format(time.RFC3339Nano)
	}
	l.m.log.Error("the store went back in time: what was confirmed between these times may be lost; the member begins anew with what is there",
		"from", from, "to", r.To.UTC().Format(time.RFC3339Nano), "cause", r.Cause, "member", l.m.cfg.Name)
}

// Rewound returns what has become of the store; nil when the member was lost for another reason, or
// is not lost.
func (m *Member) Rewound() *Rewind {
	m.lease.mu.Lock()
	defer m.lease.mu.Unlock()
	return m.lease.rewound
}
