package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestARenewalDetectsARewoundStore(t *testing.T) {
	at := time.UnixMilli(1000)
	known := renewalRecord{renewals: 5, generation: 7, history: "h", at: at}
	goesOn := persistence.Pulse{Now: at.Add(time.Second), Renewals: 6, Before: 900, Generation: 7, History: "h"}
	change := func(f func(*persistence.Pulse)) persistence.Pulse {
		p := goesOn
		f(&p)
		return p
	}
	other := change(func(p *persistence.Pulse) { p.History, p.Kept = "other", 800 })
	kept := other
	kept.Takeover = &persistence.Takeover{Cause: "x has taken over"}
	late := change(func(p *persistence.Pulse) { p.Now = at.Add(persistence.Forgotten) })
	from, to := time.UnixMilli(900), goesOn.Now
	for name, tt := range map[string]struct {
		known renewalRecord
		pulse persistence.Pulse
		err   error
		want  *Rewind
	}{
		"it goes on": {known, goesOn, nil, nil},
		"renewals whose answers were lost": {known,
			change(func(p *persistence.Pulse) { p.Renewals = 9 }), nil, nil},
		"the first renewal": {renewalRecord{}, goesOn, nil, nil},
		"no answer":         {known, persistence.Pulse{}, errors.New("away"), nil},
		"fenced":            {known, goesOn, persistence.ErrFenced, nil},
		"a renewal is gone": {known,
			change(func(p *persistence.Pulse) { p.Renewals = 5 }), nil,
			&Rewind{from, to, true, "a renewal of this member's lease is missing"}},
		"a change of owners is gone": {known,
			change(func(p *persistence.Pulse) { p.Generation = 6 }), nil,
			&Rewind{from, to, true, "a change of shard owners is missing"}},
		"the member is not known": {known, goesOn, persistence.ErrRewound,
			&Rewind{time.Time{}, to, true, "the store does not know this member any longer"}},
		"it has been forgotten meanwhile": {known, late, persistence.ErrRewound, nil},
		"another member has found it": {known, other, persistence.ErrFenced,
			&Rewind{time.UnixMilli(800), to, true, "another member has found it"}},
		"found without being fenced": {known, other, nil, &Rewind{time.UnixMilli(800), to, true,
			"another member has found it"}},
		"another server that has it all": {known, kept, persistence.ErrFenced,
			&Rewind{time.UnixMilli(800), to, false, "x has taken over"}},
		"nothing is compared with no lease": {renewalRecord{}, other, persistence.ErrFenced, nil},
	} {
		require.Equal(t, tt.want, tt.known.findRewind(tt.pulse, tt.err), name)
	}
}
