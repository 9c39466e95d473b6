package lease

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Rewind reports that the store lost its recent state: it went back in time, or another server has
// taken over. The member has ended because of that.
type Rewind struct {
	// From and To bound the time in which possibly lost writes were confirmed, by the store's
	// clock. From is zero if unknown.
	From, To time.Time
	// Lost reports whether writes that were confirmed to this member may be lost.
	Lost  bool
	Cause string // for logs
}

// renewalRecord holds the results of the last renewal. A store that kept its state never returns
// smaller numbers.
type renewalRecord struct {
	renewals, generation int64
	history              string
	at                   time.Time // time of the last renewal by the store's clock; zero if none
}

// findRewind returns a Rewind if a renewal shows that the store lost its recent state; else nil.
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

// recordPulse stores the result of a normal renewal.
func (p *renewalRecord) recordPulse(pulse persistence.Pulse) {
	*p = renewalRecord{pulse.Renewals, pulse.Generation, pulse.History, pulse.Now}
}

// timeFromMillis converts a time of the store; 0 gives the zero time.
func timeFromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// detectRewind stores and returns the rewind that a renewal shows. It returns nil if there is none,
// or if the member has no lease anymore.
func (l *Lease) detectRewind(pulse persistence.Pulse, err error) *Rewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fenced || l.givenUp {
		return nil
	}
	l.rewound = l.lastRenewal.findRewind(pulse, err)
	return l.rewound
}

// endHistory ends all incarnations of the lost history in the store, unless another member has done
// so. So none of them writes from outdated state. If the call fails, each member detects the loss
// by itself.
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

// Rewound returns how the store lost its recent state; nil if the member was not lost, or was lost
// for another reason.
func (l *Lease) Rewound() *Rewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rewound
}
