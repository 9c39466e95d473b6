package lease

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Rewind reports that the store does not continue where it was: it went back in time, or another
// server has taken over. The member has ended because of that.
type Rewind struct {
	// From and To bound, by the store's clock, when possibly lost writes were confirmed. A zero
	// From is unknown.
	From, To time.Time
	// Lost is false if everything that was confirmed to this member is still there.
	Lost  bool
	Cause string // for logs
}

// renewalRecord holds the results of the last renewal. A store that continues never returns less.
type renewalRecord struct {
	renewals, generation int64
	history              string
	at                   time.Time // by the store's clock; zero if there was no renewal
}

// findRewind returns a Rewind if a renewal shows that the store does not continue from the past;
// nil if it does.
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
		found.From, found.Cause = timeFromMillis(pulse.Before), "a renewal of this member's lease is missing"
	case pulse.Generation < p.generation:
		found.From, found.Cause = timeFromMillis(pulse.Before), "a change of shard owners is missing"
	default:
		return nil
	}
	return found
}

// recordPulse stores a renewal without such signs.
func (p *renewalRecord) recordPulse(pulse persistence.Pulse) {
	*p = renewalRecord{pulse.Renewals, pulse.Generation, pulse.History, pulse.Now}
}

// timeFromMillis converts a time of the store; 0 means unknown and gives the zero time.
func timeFromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// detectRewind stores and returns what a renewal shows of a store that does not continue; nil if it
// does, or if the member has no lease anymore.
func (l *Lease) detectRewind(pulse persistence.Pulse, err error) *Rewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced || l.givenUp {
		return nil
	}
	l.rewound = l.lastRenewal.findRewind(pulse, err)
	return l.rewound
}

// endHistory ends all incarnations of the history whose end the store has lost, unless another
// member has done so. So none of them writes from its old knowledge. If the store fails, each
// member notices the loss by itself.
func (l *Lease) endHistory(ctx context.Context, r *Rewind) {
	kept := int64(0)
	if !r.From.IsZero() {
		kept = r.From.UnixMilli()
	}
	if err := l.store.BeginHistory(ctx, l.lastRenewal.history, kept); err != nil {
		l.log.Warn("stopping members with a lost store history failed: each one notices by itself", "error", err)
	}
}

// logRewind logs what happened to the store.
func (l *Lease) logRewind() {
	r := l.rewound
	if !r.Lost {
		l.log.Warn("store moved to another server with all confirmed data: restarting the member",
			"cause", r.Cause, "member", l.member)
		return
	}
	from := "not known"
	if !r.From.IsZero() {
		from = r.From.UTC().Format(time.RFC3339Nano)
	}
	l.log.Error("store went back in time: data confirmed between these times may be lost; restarting the member with the stored data",
		"from", from, "to", r.To.UTC().Format(time.RFC3339Nano), "cause", r.Cause, "member", l.member)
}

// Rewound returns what happened to the store; nil if the member is not lost, or was lost for
// another reason.
func (l *Lease) Rewound() *Rewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rewound
}
