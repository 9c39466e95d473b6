package persistence

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARateIsNeverExceeded uses random request times. In no interval of the rate's length do more
// begin than its limit, and no request waits much longer than needed.
func TestARateIsNeverExceeded(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		per, limit := int64(1+rng.IntN(5_000)), 1+rng.IntN(20)
		now, state := int64(1_000_000), KeyState{}
		var begun []int64
		for range 400 {
			b := &PermitBook{Now: now, State: state, Waiting: []PermitRow{{Holder: "h", Key: "k", Limit: limit, PerMS: per}}}
			v := b.Decide()
			state = v.State
			in := 0
			for _, at := range begun {
				if at > now-per {
					in++
				}
			}
			if len(v.Given) == 1 {
				begun = append(begun, now)
				require.Less(t, in, limit, "seed %d: more than %d in %d ms", seed, limit, per)
				now += rng.Int64N(max(1, per/int64(limit)))
				continue
			}
			require.Greater(t, v.Again, now, "seed %d", seed)
			require.LessOrEqual(t, v.Again, now+per, "seed %d", seed)
			inLonger := 0
			for _, at := range begun {
				if at > now-per-per/slotsPerWindow-1 {
					inLonger++
				}
			}
			require.GreaterOrEqual(t, inLonger, limit, "seed %d: somebody waits who need not", seed)
			now = v.Again
		}
		require.LessOrEqual(t, len(state.Begun), 300*24, "seed %d: what is remembered is bounded", seed)
	}
}

// TestRateWindowStaysSmallAfterTheRateWasShortened adds one begin at a rate per day, and then a
// hundred per second for an hour.
func TestRateWindowStaysSmallAfterTheRateWasShortened(t *testing.T) {
	const day, second = 24 * 3600_000, 1_000
	w := &rateWindow{}
	w.addBegin(0, day)
	for now := int64(10); now <= 3600_000; now += 10 {
		w.addBegin(now, second)
		require.Less(t, len(w.slots), 2_000, "at %d", now)
	}
	n := 0
	for _, s := range w.slots {
		n += s.n
		require.LessOrEqual(t, s.first, s.last)
	}
	require.Equal(t, 360_001, n, "who counts for the day still does")
	_, ok := w.hasRoom(3600_000, second, 101)
	require.True(t, ok, "a hundred have begun within the last second, and none of those before count")
	_, ok = w.hasRoom(3600_000, day, 360_001)
	require.False(t, ok)
}

// TestARateGoesOnWhenTheClockWasPutBack counts begins whose times are an hour ahead.
func TestARateGoesOnWhenTheClockWasPutBack(t *testing.T) {
	ask := func(now int64, state KeyState) PermitVerdict {
		return (&PermitBook{Now: now, State: state, Waiting: []PermitRow{{Holder: "h", Key: "k", Limit: 1, PerMS: 1_000}}}).Decide()
	}
	v := ask(7200_000, KeyState{})
	require.Len(t, v.Given, 1)
	v = ask(3600_000, v.State)
	require.Empty(t, v.Given)
	require.Equal(t, int64(3601_000), v.Again, "as if they had begun just now")
	require.LessOrEqual(t, v.IdleAt, int64(3600_000+KeyForgottenMS))
	require.Len(t, ask(3601_000, v.State).Given, 1)
}

func TestAWindowIsReadAsItWasWritten(t *testing.T) {
	w := &rateWindow{spanMS: 60_000, slots: []windowSlot{{1, 5, 3}, {9, 9, 1}}}
	require.Equal(t, w, readWindow(w.formatText()))
	require.Equal(t, &rateWindow{}, readWindow(""))
	require.Equal(t, &rateWindow{}, readWindow("what is this"))
}

// TestHoldersNeitherStarveNorExceedTheLimit uses random requests and releases.
func TestHoldersNeitherStarveNorExceedTheLimit(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		limit, fairs := 1+rng.IntN(3), 1+rng.IntN(4)
		var waiting, held []PermitRow
		state, turns := KeyState{}, map[string]int{}
		n := 0
		for range 300 {
			for range rng.IntN(4) {
				n++
				waiting = append(waiting, PermitRow{Holder: fmt.Sprintf("h%04d", n), Key: "k", Limit: limit, AskedAt: int64(n),
					Priority: rng.IntN(3), Fair: fmt.Sprint("f", rng.IntN(fairs))})
			}
			if len(held) > 0 {
				i := rng.IntN(len(held))
				held = append(held[:i], held[i+1:]...)
			}
			InTurn(waiting, state.Cursor)
			v := (&PermitBook{Now: 1, State: state, Held: len(held), Waiting: waiting}).Decide()
			state = v.State
			require.Equal(t, min(len(waiting), limit-len(held)), len(v.Given),
				"seed %d: there is room and somebody waits, or there is not", seed)
			for _, r := range v.Given {
				turns[r.Fair] = 0
				left := map[string]bool{}
				for _, other := range waiting {
					left[other.Fair] = other.Fair != r.Fair
				}
				for fair, waits := range left {
					if waits {
						turns[fair]++
						require.LessOrEqual(t, turns[fair], 2*fairs+limit, "seed %d: %s starves", seed, fair)
					}
				}
			}
			held = append(held, v.Given...)
			waiting = waiting[len(v.Given):]
			require.LessOrEqual(t, len(held), limit, "seed %d", seed)
		}
	}
}

// TestDecisionIsRepeatedWhenANewHolderMustMakeRoom: only holders of a key can make room.
func TestDecisionIsRepeatedWhenANewHolderMustMakeRoom(t *testing.T) {
	row := func(holder, full string) PermitRow { return PermitRow{Holder: holder, Key: "k", Limit: 1, Full: full} }
	b := &PermitBook{Waiting: []PermitRow{row("old", ""), row("new", fullCancel)}}
	v := b.Decide()
	require.Len(t, v.Given, 1)
	require.Empty(t, v.Evicted)
	require.True(t, v.More, "the one who was given it has to make room at once")
	b = &PermitBook{Held: 1, Waiting: []PermitRow{row("new", fullCancel)}, Running: []PermitRow{row("old", "")}}
	v = b.Decide()
	require.Len(t, v.Evicted, 1)
	require.False(t, v.More)
	b = &PermitBook{Held: 1, Evicted: 1, Waiting: []PermitRow{row("new", fullCancel)}}
	require.False(t, b.Decide().More, "he is on his way")
}

// TestIdleTimeOfAKeyChangesSeldom: it is in an index of the store, and every decision writes it.
func TestIdleTimeOfAKeyChangesSeldom(t *testing.T) {
	const begin = 1_700_000_000_000
	seen := map[int64]bool{}
	for now := int64(begin); now < begin+60_000; now += 100 {
		b := &PermitBook{Now: now, Waiting: []PermitRow{{Holder: "h", Key: "k", Limit: 1, PerMS: 3600_000}}}
		v := b.Decide()
		require.GreaterOrEqual(t, v.IdleAt, now+3600_000, "not before it counts no more")
		require.Less(t, v.IdleAt, now+3600_000+60_000)
		seen[v.IdleAt] = true
	}
	require.LessOrEqual(t, len(seen), 2)
}
