package attack

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestAttack(t *testing.T) {
	form := os.Getenv("TROUPE_ATTACK")
	full := form == "full"
	sieges := []*siege{{store: "SQLite", full: full, fresh: func(t *testing.T) *member { return newMember(t, "", "") }}}
	if form != "" {
		sieges = append(sieges, &siege{store: "PostgreSQL", full: full,
			fresh: func(t *testing.T) *member { return newMember(t, pgtest.DSN(t), "attackers-have-it") }})
	}
	for _, s := range sieges {
		t.Run(s.store, func(t *testing.T) {
			if !full { // the long form measures time
				t.Parallel()
			}
			s.run(t)
		})
	}
}

// siege is a run of all attacks on members with one kind of store.
type siege struct {
	store   string
	full    bool
	fresh   func(*testing.T) *member
	whole   *testing.T // test of all attacks
	m       *member
	probe   *probe
	left    []victim // since the last restart
	results []result
}

func (s *siege) run(t *testing.T) {
	s.whole = t
	defer func() { table(t, s.store, s.results) }()
	s.renew(t)
	for _, k := range attacks {
		s.part(k.name, func(t *testing.T) { s.one(t, k) })
	}
	s.part("after a restart", s.restart)
	s.part("all at once", s.all)
	s.part("after another restart", s.restart)
	s.probe.end()
	require.NoError(t, s.m.leave())
	require.Empty(t, s.m.cries(t))
}

// part runs a subtest. After a failure the next part gets a new member and an empty store.
func (s *siege) part(name string, test func(*testing.T)) {
	if s.whole.Run(name, test) {
		return
	}
	s.probe.end()
	s.m.kill()
	s.renew(s.whole)
}

func (s *siege) renew(t *testing.T) {
	var err error
	for range 4 { // another process may have taken the address meanwhile
		s.m, s.left = s.fresh(t), nil
		if err = s.m.open(); err == nil {
			break
		}
	}
	require.NoError(t, err)
	s.begin(t)
}

// begin starts the users.
func (s *siege) begin(t *testing.T) {
	var err error
	s.probe, err = startProbe(s.m)
	require.NoError(t, err)
	require.Empty(t, s.goesOn(20)) // everything is warmed up
	s.probe.report()
}

// goesOn waits until more simple tasks have ended, including those already running.
func (s *siege) goesOn(tasks int) (holes []string) {
	want := s.probe.ended() + tasks
	for began := time.Now(); s.probe.ended() < want; time.Sleep(5 * time.Millisecond) {
		if s.m.process.Gone() {
			now, _ := s.m.weight.read()
			return []string{fmt.Sprintf("the member has ended (%v, with %.0f MB): the reason is "+
				"in its log, or it took more than %d MB", s.m.process.Err, now, deadlyMB)}
		}
		if time.Since(began) > patience {
			return []string{fmt.Sprintf("simple tasks stand still: %d of %d ended in %v", s.probe.ended()-want+tasks, tasks, patience)}
		}
	}
	return nil
}

// one runs an attack and checks the state after it.
func (s *siege) one(t *testing.T, k attack) {
	r := s.result(k.name)
	defer s.tell(t, r)
	a := s.strike(t, r, []attack{k})[0]
	for _, refusal := range a.refusals {
		t.Logf("refused: %s", refusal)
	}
	if len(r.Holes) > 0 {
		return
	}
	after, cancel := s.m.aftermath(t.Context())
	defer cancel()
	victims := a.victims
	after.look(victims)
	if len(victims) > 0 && !k.busy {
		s.left, victims = append(s.left, victims[0]), victims[1:]
	}
	after.cancel(victims)
	r.CancelMS, r.Holes = milli(after.slow), append(r.Holes, after.holes...)
}

// all runs all attacks at once. Their tasks continue until the member is killed.
func (s *siege) all(t *testing.T) {
	r := s.result("all at once")
	defer s.tell(t, r)
	for _, a := range s.strike(t, r, attacks) {
		s.left = append(s.left, a.victims...)
	}
}

func (s *siege) result(attack string) *result {
	return &result{Attack: attack, Store: s.store, Full: s.full, Answers: map[int]int{}}
}

// strike runs attacks and measures the effects on users and the member.
func (s *siege) strike(t *testing.T, r *result, attacks []attack) []*attacker {
	s.m.weight.forget()
	s.probe.report()
	ctx, cancel := s.m.within(t.Context(), strikeTime)
	defer cancel()
	began := time.Now()
	var work sync.WaitGroup
	attackers := make([]*attacker, len(attacks))
	for i, k := range attacks {
		attackers[i] = newAttacker(ctx, s.m, k.name, s.full)
		work.Go(func() { k.strike(attackers[i]) })
	}
	work.Wait()
	r.Seconds = time.Since(began).Seconds()
	r.Holes = s.goesOn(attackers[0].of(2*users, 60))
	for _, a := range attackers {
		a.hangUp()
		for status, n := range a.answers {
			r.Answers[status] += n
		}
		r.Holes = append(r.Holes, a.holes...)
	}
	r.users(s.probe.report())
	return attackers
}

// tell reports an attack. It is called after the reads and cancels, which also cost memory.
func (s *siege) tell(t *testing.T, r *result) {
	r.RSSMB, r.PeakMB = s.m.weight.read()
	s.results = append(s.results, *r)
	r.judge(t)
}

// restart kills the member. Its successor must read, list and cancel all touched tasks.
func (s *siege) restart(t *testing.T) {
	s.probe.end()
	began := time.Now()
	s.m.kill()
	require.NoError(t, s.m.open())
	r := s.result("restart")
	defer s.tell(t, r)
	after, cancel := s.m.aftermath(t.Context())
	defer cancel()
	byAttack := map[string][]victim{}
	for _, v := range s.left {
		byAttack[v.attack] = append(byAttack[v.attack], v)
	}
	for _, victims := range byAttack {
		after.look(victims)
	}
	after.cancel(s.left)
	s.left = nil
	r.Seconds, r.CancelMS, r.Holes = time.Since(began).Seconds(), milli(after.slow), after.holes
	s.begin(t)
}
