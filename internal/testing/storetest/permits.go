package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// createAsking creates a task that requests keys, with one holder for each key.
func (w *testEnv) createAsking(task string, rows ...persistence.PermitRow) {
	w.Helper()
	w.mustCommit(changeCommit(createCommit(task), func(c *persistence.Commit) { c.Permits = &persistence.PermitChanges{Ask: rows} }))
}

// newPermit returns a row of a holder that requests a key with a limit.
func newPermit(holder, key string, limit int, change ...func(*persistence.PermitRow)) persistence.PermitRow {
	r := persistence.PermitRow{Holder: holder, Key: key, Limit: limit, AskedAt: 10, Turn: holder}
	for _, f := range change {
		f(&r)
	}
	return r
}

// changePermits changes permits of a task.
func (w *testEnv) changePermits(task string, seq int64, p persistence.PermitChanges) {
	w.Helper()
	w.mustCommit(changeCommit(appendCommit(task, seq), func(c *persistence.Commit) { c.Permits = &p }))
}

// ruleKey makes a decision about a key and returns the notified holders. Refused holders are
// prefixed with - and evicted holders with !.
func (w *testEnv) ruleKey(key string, anew bool) string {
	w.Helper()
	r, err := w.Rule(w.ctx(), w.me, persistence.PermitQuestion{Key: key, Anew: anew})
	require.NoError(w, err)
	var names []string
	add := func(rows []persistence.PermitRow, mark string) {
		for _, row := range rows {
			require.Equal(w, key, row.Key)
			names = append(names, mark+row.Holder)
		}
	}
	add(r.Given, "")
	slices.Sort(names)
	add(r.Refused, "-")
	add(r.Evicted, "!")
	return strings.Join(names, " ")
}

func permitID(holder, key string) persistence.PermitID {
	return persistence.PermitID{Holder: holder, Key: key}
}

// permitStates returns the states of a task's permits.
func (w *testEnv) permitStates(task string) map[string]persistence.PermitState {
	w.Helper()
	states := map[string]persistence.PermitState{}
	for _, r := range requireList[persistence.PermitRow](w)(w.PermitsOf(w.ctx(), task)) {
		states[r.Holder+" "+r.Key] = r.State
	}
	return states
}

var permits = []storeBehavior{
	{"a key is given as often as its limit says, to those who asked first", func(w *testEnv) {
		w.createAsking("a", newPermit("a3", "k", 2), newPermit("a1", "k", 2), newPermit("x", "other", 1))
		w.createAsking("b", newPermit("b2", "k", 2, func(r *persistence.PermitRow) { r.AskedAt = 9 }))
		require.Equal(w, "a1 b2", w.ruleKey("k", false))
		require.Equal(w, map[string]persistence.PermitState{"a1 k": persistence.PermitGiven,
			"a3 k": persistence.PermitWaits, "x other": persistence.PermitWaits}, w.permitStates("a"))
		w.changePermits("b", 2, persistence.PermitChanges{Hold: []persistence.PermitID{permitID("b2", "k")}})
		w.changePermits("a", 2, persistence.PermitChanges{Hold: []persistence.PermitID{permitID("a1", "k"), permitID("a1", "nothing")}})
		require.Empty(w, w.ruleKey("k", true), "there is no room")
		w.changePermits("a", 3, persistence.PermitChanges{Release: []persistence.PermitID{permitID("a1", "k"), permitID("a1", "nothing")}})
		require.Equal(w, "a3", w.ruleKey("k", false))
		require.Equal(w, "x", w.ruleKey("other", false))
	}},
	{"those who ask from scopes however deep are given a key, have it and let it go", func(w *testEnv) {
		turn := func(turn string) func(*persistence.PermitRow) {
			return func(r *persistence.PermitRow) { r.Turn = turn }
		}
		x, y := deepID("x"), deepID("y")
		w.createAsking("a", newPermit(x, "k", 1, turn("1")), newPermit(y, "k", 1, turn("2")))
		require.Equal(w, x, w.ruleKey("k", false))
		require.Equal(w, x, w.ruleKey("k", true))
		w.changePermits("a", 2, persistence.PermitChanges{Hold: []persistence.PermitID{permitID(x, "k")}})
		require.Equal(w, map[string]persistence.PermitState{x + " k": persistence.PermitHeld,
			y + " k": persistence.PermitWaits}, w.permitStates("a"))
		w.changePermits("a", 3, persistence.PermitChanges{Release: []persistence.PermitID{permitID(x, "k")}})
		require.Equal(w, y, w.ruleKey("k", false))
	}},
	{"who is given a key hears of it again until his task has answered", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k", 2), newPermit("a2", "k", 2))
		require.Equal(w, "a1 a2", w.ruleKey("k", false))
		require.Equal(w, "a1 a2", w.ruleKey("k", true))
		require.Empty(w, w.ruleKey("k", false), "he has just heard")
		w.changePermits("a", 2, persistence.PermitChanges{Hold: []persistence.PermitID{permitID("a1", "k")}})
		require.Equal(w, "a2", w.ruleKey("k", true))
		require.Equal(w, persistence.PermitHeld, w.permitStates("a")["a1 k"])
	}},
	{"what is asked for and released at once is not asked for", func(w *testEnv) {
		w.createAsking("a")
		w.changePermits("a", 2, persistence.PermitChanges{Ask: []persistence.PermitRow{newPermit("a1", "k", 1), newPermit("a2", "k", 1)},
			Hold: []persistence.PermitID{permitID("a1", "k")}, Release: []persistence.PermitID{permitID("a1", "k")}})
		require.Equal(w, map[string]persistence.PermitState{"a2 k": persistence.PermitWaits}, w.permitStates("a"))
	}},
	{"what is asked for is asked for once", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k", 1))
		require.Equal(w, "a1", w.ruleKey("k", false))
		w.changePermits("a", 2, persistence.PermitChanges{Ask: []persistence.PermitRow{newPermit("a1", "k", 5)}})
		require.Equal(w, map[string]persistence.PermitState{"a1 k": persistence.PermitGiven}, w.permitStates("a"))
	}},
	{"the higher priority goes first, and each of fair has its turn", func(w *testEnv) {
		urgent := func(p int, fair string) func(*persistence.PermitRow) {
			return func(r *persistence.PermitRow) { r.Priority, r.Fair = p, fair }
		}
		w.createAsking("a", newPermit("p1", "p", 1, urgent(-5, "")),
			newPermit("p2", "p", 1, urgent(0, "")), newPermit("p3", "p", 1, urgent(7, "")),
			newPermit("x1", "f", 1, urgent(9, "x")), newPermit("x2", "f", 1, urgent(9, "x")), newPermit("x3", "f", 1, urgent(10, "x")),
			newPermit("y1", "f", 1, urgent(0, "y")), newPermit("z1", "f", 1, urgent(0, "z")), newPermit("z2", "f", 1, urgent(1, "z")))
		seq := int64(1)
		drain := func(key string) (order []string) {
			for holder := w.ruleKey(key, false); holder != ""; holder = w.ruleKey(key, false) {
				seq++
				order = append(order, holder)
				w.changePermits("a", seq, persistence.PermitChanges{Release: []persistence.PermitID{permitID(holder, key)}})
			}
			return order
		}
		require.Equal(w, []string{"p3", "p2", "p1"}, drain("p"))
		require.Equal(w, []string{"x3", "y1", "z2", "x1", "z1", "x2"}, drain("f"))
	}},
	{"turns are taken however many wait", func(w *testEnv) {
		rng := rand.New(rand.NewPCG(3, 1))
		for round, fairs := range []int{1, 7, persistence.PermitsAtOnce, 3 * persistence.PermitsAtOnce} {
			key := fmt.Sprint("k", round)
			var rows []persistence.PermitRow
			for i := range 4 * persistence.PermitsAtOnce {
				fair := min(rng.IntN(fairs), rng.IntN(fairs))
				rows = append(rows, newPermit(fmt.Sprintf("h%03d", i), key, len(key)*10_000, func(r *persistence.PermitRow) {
					r.Fair, r.Priority, r.AskedAt = fmt.Sprintf("f%03d", fair), rng.IntN(3), int64(rng.IntN(50))
				}))
			}
			w.createAsking("task"+key, rows...)
			for cursor := ""; len(rows) > 0; {
				persistence.InTurn(rows, cursor)
				n := min(len(rows), persistence.PermitsAtOnce)
				var want []string
				for _, r := range rows[:n] {
					want, cursor = append(want, r.Holder), r.Fair
				}
				slices.Sort(want)
				require.Equal(w, strings.Join(want, " "), w.ruleKey(key, false), "%d values of fair, %d wait", fairs, len(rows))
				rows = rows[n:]
			}
		}
	}},
	{"it is told how many wait before somebody, up to a bound", func(w *testEnv) {
		var rows []persistence.PermitRow
		for i := range persistence.MostBefore + 10 {
			rows = append(rows, newPermit(fmt.Sprintf("h%05d", i), "k", 1))
		}
		w.createAsking("a", rows...)
		got := requireList[persistence.PermitRow](w)(w.PermitsOf(w.ctx(), "a"))
		require.Equal(w, []int{7, persistence.MostBefore, persistence.MostBefore},
			[]int{got[7].Before, got[persistence.MostBefore].Before, got[persistence.MostBefore+9].Before})
	}},
	{"it is told how many wait before somebody", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k", 1), newPermit("a2", "k", 1),
			newPermit("a3", "k", 1, func(r *persistence.PermitRow) { r.Priority = 3 }))
		rows := requireList[persistence.PermitRow](w)(w.PermitsOf(w.ctx(), "a"))
		require.Equal(w, []int{1, 2, 0}, []int{rows[0].Before, rows[1].Before, rows[2].Before})
		require.Equal(w, persistence.PermitRow{Task: "a", Holder: "a3", Key: "k", Limit: 1, AskedAt: 10, Turn: "a3", Priority: 3}, rows[2])
		require.Empty(w, requireList[persistence.PermitRow](w)(w.PermitsOf(w.ctx(), "nobody")))
	}},
	{"who does not want to wait is refused when there is no room", func(w *testEnv) {
		refuse := func(r *persistence.PermitRow) { r.Full = "refuse" }
		w.createAsking("a", newPermit("a1", "k", 1, refuse), newPermit("a2", "k", 1, refuse), newPermit("a3", "k", 1))
		require.Equal(w, "a1 -a2", w.ruleKey("k", false))
		require.Equal(w, "a1 -a2", w.ruleKey("k", true))
		w.changePermits("a", 2, persistence.PermitChanges{Release: []persistence.PermitID{permitID("a1", "k"), permitID("a2", "k")}})
		require.Equal(w, "a3", w.ruleKey("k", false))
	}},
	{"who does not want to wait is not refused as long as there is room, however many ask at once", func(w *testEnv) {
		rows := []persistence.PermitRow{newPermit("a patient one", "k", 500)}
		for i := range 2*persistence.PermitsAtOnce + 20 {
			rows = append(rows, newPermit(fmt.Sprintf("h%03d", i), "k",
				2*persistence.PermitsAtOnce+10, func(r *persistence.PermitRow) { r.Full = "refuse" }))
		}
		w.createAsking("a", rows...)
		given, refused := 0, 0
		for more := true; more; {
			r, err := w.Rule(w.ctx(), w.me, persistence.PermitQuestion{Key: "k"})
			require.NoError(w, err)
			given, refused, more = given+len(r.Given), refused+len(r.Refused), r.More
		}
		require.Equal(w, []int{2*persistence.PermitsAtOnce + 10, 11}, []int{given, refused})
	}},
	{"the oldest makes room for one who cancels, and nobody has its place before it has gone", func(w *testEnv) {
		cancels := func(r *persistence.PermitRow) { r.Full = "cancel_running" }
		w.createAsking("a", newPermit("a1", "k", 2), newPermit("a2", "k", 2))
		require.Equal(w, "a1 a2", w.ruleKey("k", false))
		w.changePermits("a", 2, persistence.PermitChanges{Hold: []persistence.PermitID{permitID("a1", "k"), permitID("a2", "k")}})
		w.createAsking("b", newPermit("b1", "k", 2, cancels))
		require.Equal(w, "!a1", w.ruleKey("k", false))
		require.Empty(w, w.ruleKey("k", false), "one for one, and told once")
		require.Equal(w, "!a1", w.ruleKey("k", true))
		require.Equal(w, []string{"k"}, requireList[string](w)(w.OpenKeys(w.ctx(), nil, "", 9)))
		w.changePermits("a", 3, persistence.PermitChanges{Release: []persistence.PermitID{permitID("a1", "k")}})
		require.Equal(w, "b1", w.ruleKey("k", false))
	}},
	{"a rate is used up by those who begin, and has room again when its time is over", func(w *testEnv) {
		rate := func(r *persistence.PermitRow) { r.PerMS = 3_600_000 }
		w.createAsking("a", newPermit("a1", "k", 2, rate), newPermit("a2", "k", 2, rate), newPermit("a3", "k", 2, rate))
		before := time.Now().UnixMilli()
		r, err := w.Rule(w.ctx(), w.me, persistence.PermitQuestion{Key: "k"})
		require.NoError(w, err)
		require.Len(w, r.Given, 2)
		require.InDelta(w, before+3_600_000, r.Again, 600_000)
		w.changePermits("a", 2, persistence.PermitChanges{Release: []persistence.PermitID{permitID("a1", "k"), permitID("a2", "k")}})
		require.Empty(w, w.ruleKey("k", false), "that they are over does not matter")
		w.createAsking("b", newPermit("b1", "k", 3, rate))
		require.Empty(w, w.ruleKey("k", false), "nobody overtakes who waits")
		w.changePermits("a", 3, persistence.PermitChanges{Release: []persistence.PermitID{permitID("a3", "k")}})
		require.Equal(w, "b1", w.ruleKey("k", false), "his own limit counts")
		w.changePermits("b", 2, persistence.PermitChanges{Release: []persistence.PermitID{permitID("b1", "k")}})
		n, err := w.ForgetKeys(w.ctx(), 9)
		require.NoError(w, err)
		require.Zero(w, n)
		w.createAsking("c", newPermit("c1", "k", 3, rate))
		require.Empty(w, w.ruleKey("k", false), "what counts is not forgotten")
	}},
	{"keys are listed by their shards as long as there is something to say", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k1", 1), newPermit("a2", "k2", 1), newPermit("a3", "k3", 1), newPermit("a4", "k2", 1))
		require.Equal(w, []string{"k1", "k2", "k3"}, requireList[string](w)(w.OpenKeys(w.ctx(), nil, "", 9)))
		require.Equal(w, []string{"k2"}, requireList[string](w)(w.OpenKeys(w.ctx(), nil, "k1", 1)))
		require.Equal(w, []string{"k3"}, requireList[string](w)(w.OpenKeys(w.ctx(),
			persistence.ShardSet{persistence.ShardOf("k3")}, "", 9)))
		require.Empty(w, requireList[string](w)(w.OpenKeys(w.ctx(), persistence.ShardSet{}, "", 9)))
		require.Equal(w, "a1", w.ruleKey("k1", false))
		require.Contains(w, requireList[string](w)(w.OpenKeys(w.ctx(), nil, "", 9)), "k1", "its task has not heard")
		w.changePermits("a", 2, persistence.PermitChanges{Hold: []persistence.PermitID{permitID("a1", "k1")}})
		require.Equal(w, []string{"k2", "k3"}, requireList[string](w)(w.OpenKeys(w.ctx(), nil, "", 9)))
	}},
	{"what a task has ends with it when it is deleted", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k", 1))
		w.createAsking("b", newPermit("b1", "k", 1, func(r *persistence.PermitRow) { r.AskedAt = 11 }))
		require.Equal(w, "a1", w.ruleKey("k", false))
		w.mustCommit(changeCommit(appendCommit("a", 2),
			func(c *persistence.Commit) {
				c.Columns = &persistence.Columns{Status: "completed",
					EndedAt: 5}
			}))
		_, err := w.DeleteEnded(w.ctx(), 100, 10)
		require.NoError(w, err)
		require.Equal(w, "b1", w.ruleKey("k", false))
		_, err = w.DeleteFlow(w.ctx(), "flow", 10)
		require.NoError(w, err)
		require.Empty(w, requireList[string](w)(w.OpenKeys(w.ctx(), nil, "", 9)))
	}},
	{"a stale commit asks for nothing and releases nothing", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k", 1))
		stale := changeCommit(appendCommit("a", 7), func(c *persistence.Commit) {
			c.Permits = &persistence.PermitChanges{Ask: []persistence.PermitRow{newPermit("a2", "k",
				1)}, Release: []persistence.PermitID{permitID("a1", "k")}}
		})
		require.ErrorIs(w, w.commitBatch(stale)[0], persistence.ErrStale)
		again := changeCommit(createCommit("a"), func(c *persistence.Commit) {
			c.Create.BodyHash = "x"
			c.Permits = &persistence.PermitChanges{Ask: []persistence.PermitRow{newPermit("a3", "k", 1)}}
		})
		require.ErrorIs(w, w.commitBatch(again)[0], persistence.ErrExists)
		require.Equal(w, map[string]persistence.PermitState{"a1 k": persistence.PermitWaits}, w.permitStates("a"))
	}},
	{"whoever is fenced gives nothing", func(w *testEnv) {
		w.createAsking("a", newPermit("a1", "k", 1))
		require.NoError(w, w.Leave(w.ctx(), w.me))
		_, err := w.Rule(w.ctx(), w.me, persistence.PermitQuestion{Key: "k"})
		require.ErrorIs(w, err, persistence.ErrFenced)
	}},
	{"whoever decides at the same time, no limit is exceeded", func(w *testEnv) {
		const limit, holders = 3, 60
		var rows []persistence.PermitRow
		for i := range holders {
			rows = append(rows, newPermit(fmt.Sprintf("h%02d", i), "k", limit))
		}
		w.createAsking("a", rows...)
		var mu sync.Mutex // guards the task's journal
		seq, done := int64(1), map[string]bool{}
		var work sync.WaitGroup
		for range 6 {
			work.Go(func() {
				for {
					r, err := w.Rule(w.ctx(), w.me, persistence.PermitQuestion{Key: "k", Anew: true})
					if err != nil {
						w.Error(err)
						return
					}
					mu.Lock()
					over := len(done) == holders
					held := 0
					all, err := w.PermitsOf(w.ctx(), "a")
					for _, row := range all {
						if row.State == persistence.PermitGiven || row.State == persistence.PermitHeld {
							held++
						}
					}
					if err != nil || held > limit {
						w.Errorf("%d hold a key of %d: %v", held, limit, err)
						over = true
					}
					for _, row := range r.Given {
						if !done[row.Holder] && !over {
							done[row.Holder] = true
							seq++
							c := changeCommit(appendCommit("a", seq), func(c *persistence.Commit) {
								c.Permits = &persistence.PermitChanges{Release: []persistence.PermitID{permitID(row.Holder, "k")}}
							})
							if answers, err := w.Commit(w.ctx(), w.me, []persistence.Commit{c}); err != nil || answers[0] != nil {
								w.Errorf("releasing: %v %v", answers, err)
								over = true
							}
							break
						}
					}
					mu.Unlock()
					if over {
						return
					}
				}
			})
		}
		work.Wait()
		require.Len(w, done, holders)
	}},
}
