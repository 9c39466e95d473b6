package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestAStoreCountsAsUnavailableAfterFailures(t *testing.T) {
	start := time.Unix(0, 0)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	full := &persistence.Outage{Reason: "its disk is full", Err: errors.New("x")}
	for name, c := range map[string]struct {
		happens func(h *storeHealth)
		at      time.Duration
		lost    bool // the lease
		reason  string
	}{
		"nothing has happened": {happens: func(*storeHealth) {}},
		"two batches in a row fail": {happens: func(
			h *storeHealth) {
			h.startBatch(start)
			h.failBatch(full)
			h.failBatch(full)
		}, at: time.Second},
		"three batches in a row fail": {happens: func(
			h *storeHealth) {
			h.startBatch(start)
			h.failBatch(full)
			h.failBatch(full)
			h.failBatch(full)
		}, reason: "its disk is full"},
		"one of three is written": {happens: func(h *storeHealth) {
			h.failBatch(full)
			h.failBatch(full)
			h.endBatch(h.startBatch(start), true)
			h.failBatch(full)
		}},
		"a batch takes a while": {happens: func(h *storeHealth) { h.startBatch(start) }, at: slowBatch - 1},
		"a batch takes too long": {happens: func(h *storeHealth) { h.startBatch(start) },
			at: slowBatch, reason: silentReason},
		"one that was refused lasts": {happens: func(
			h *storeHealth) {
			h.startBatch(start)
			h.failBatch(full)
		}, at: slowBatch, reason: "its disk is full"},
		"an older one takes too long": {happens: func(
			h *storeHealth) {
			h.startBatch(start)
			h.endBatch(h.startBatch(after(time.Second)), true)
		}, at: slowBatch, reason: silentReason},
		"all are written at last": {happens: func(h *storeHealth) {
			n := h.startBatch(start)
			h.failBatch(full)
			h.failBatch(full)
			h.failBatch(full)
			h.endBatch(n, true)
		}, at: time.Hour},
		"the member gave one up": {happens: func(h *storeHealth) {
			h.endBatch(h.startBatch(start),
				false)
		}, at: time.Hour},
		"a renewal fails": {happens: func(h *storeHealth) { h.recordRenewal(full, start) },
			at: time.Second},
		"the lease runs out": {happens: func(h *storeHealth) {
			h.recordRenewal(full,
				start)
		}, at: 2 * time.Second, lost: true, reason: "its disk is full"},
		"it runs out without a word": {happens: func(*storeHealth) {}, at: 2 * time.Second,
			lost: true, reason: silentReason},
		"another reason, long ago": {happens: func(h *storeHealth) {
			h.recordRenewal(full,
				start)
			h.recordRenewal(nil, after(1))
		}, at: 2 * time.Second, lost: true, reason: silentReason},
		"an error that has no reason": {happens: func(h *storeHealth) {
			h.recordRenewal(
				errors.New("x"), start)
		}, lost: true, reason: silentReason},
		"the newest reason of several": {happens: func(h *storeHealth) {
			h.recordRenewal(
				errors.New("x"), start)
			h.recordRenewal(full, after(1))
		}, lost: true, reason: "its disk is full"},
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
