package actors

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestAStoreCountsAsAwayWhenItHasFailedForAWhile(t *testing.T) {
	start := time.Unix(0, 0)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	full := &persistence.Outage{Reason: "its disk is full", Err: errors.New("x")}
	for name, c := range map[string]struct {
		happens func(h *storeHealth)
		at      time.Duration
		lost    bool // the lease
		reason  string
	}{
		"nothing has happened":         {happens: func(*storeHealth) {}},
		"two batches in a row fail":    {happens: func(h *storeHealth) { h.begin(start); h.fail(full); h.fail(full) }, at: time.Second},
		"three batches in a row fail":  {happens: func(h *storeHealth) { h.begin(start); h.fail(full); h.fail(full); h.fail(full) }, reason: "its disk is full"},
		"one of three is written":      {happens: func(h *storeHealth) { h.fail(full); h.fail(full); h.end(h.begin(start), true); h.fail(full) }},
		"a batch takes a while":        {happens: func(h *storeHealth) { h.begin(start) }, at: slowBatch - 1},
		"a batch takes too long":       {happens: func(h *storeHealth) { h.begin(start) }, at: slowBatch, reason: silent},
		"one that was refused lasts":   {happens: func(h *storeHealth) { h.begin(start); h.fail(full) }, at: slowBatch, reason: "its disk is full"},
		"an older one takes too long":  {happens: func(h *storeHealth) { h.begin(start); h.end(h.begin(after(time.Second)), true) }, at: slowBatch, reason: silent},
		"all are written at last":      {happens: func(h *storeHealth) { n := h.begin(start); h.fail(full); h.fail(full); h.fail(full); h.end(n, true) }, at: time.Hour},
		"the member gave one up":       {happens: func(h *storeHealth) { h.end(h.begin(start), false) }, at: time.Hour},
		"a renewal fails":              {happens: func(h *storeHealth) { h.renew(full, start) }, at: time.Second},
		"the lease runs out":           {happens: func(h *storeHealth) { h.renew(full, start) }, at: 2 * time.Second, lost: true, reason: "its disk is full"},
		"it runs out without a word":   {happens: func(*storeHealth) {}, at: 2 * time.Second, lost: true, reason: silent},
		"another reason, long ago":     {happens: func(h *storeHealth) { h.renew(full, start); h.renew(nil, after(1)) }, at: 2 * time.Second, lost: true, reason: silent},
		"an error that has no reason":  {happens: func(h *storeHealth) { h.renew(errors.New("x"), start) }, lost: true, reason: silent},
		"the newest reason of several": {happens: func(h *storeHealth) { h.renew(errors.New("x"), start); h.renew(full, after(1)) }, lost: true, reason: "its disk is full"},
	} {
		t.Run(name, func(t *testing.T) {
			h := storeHealth{batches: map[int64]time.Time{}}
			c.happens(&h)
			reason, away := h.isAway(after(c.at), !c.lost)
			require.Equal(t, c.reason, reason)
			require.Equal(t, c.reason != "", away)
		})
	}
}
