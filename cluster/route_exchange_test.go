package cluster

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

func TestEachOwnerClaimsAsManyJobsAsItHasOrders(t *testing.T) {
	for name, tt := range map[string]struct {
		most, a, b, c int
	}{
		"as many as orders": {6, 3, 2, 1},
		"more":              {10, 7, 2, 1},
		"fewer":             {4, 1, 2, 1},
		"fewer than others": {1, 0, 1, 0},
		"not said":          {0, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "a", "b", "c")
			var orders engine.Orders
			for _, owner := range []string{"b", "a", "c", "a", "b", "a"} {
				orders = append(orders, signal(s.taskOf(owner)))
			}
			done, err := s.members["a"].router.Exchange(soon(t),
				engine.Exchange{Orders: orders, Next: engine.Poll{Worker: "w",
					Services: []string{"x"}, Max: tt.most}})
			require.NoError(t, err)
			require.Len(t, done.Outcomes, 6)
			require.Len(t, done.Jobs, max(tt.most, 1))
			bytes := 0
			for member, want := range map[string]int{"a": tt.a, "b": tt.b, "c": tt.c} {
				m := s.members[member]
				require.Len(t, m.effects, map[string]int{"a": 3, "b": 2, "c": 1}[member])
				if want == 0 {
					require.Empty(t, m.wanted, member)
					continue
				}
				require.Len(t, m.wanted, 1, member)
				require.Equal(t, want, m.wanted[0].Max, member)
				require.Equal(t, []string{"x"}, m.wanted[0].Services)
				require.Positive(t, m.wanted[0].Bytes)
				bytes += m.wanted[0].Bytes
			}
			require.LessOrEqual(t, bytes, maxClaimed)
		})
	}
}

func TestOrdersThatAreAskedForAgainClaimNothingMore(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	moved := s.taskOf("b")
	s.move(moved, "c")
	done, err := s.members["a"].router.Exchange(soon(t), engine.Exchange{Orders: engine.Orders{signal(moved)}, Next: engine.Poll{Max: 1}})
	require.NoError(t, err)
	require.NoError(t, done.Outcomes[0].Err)
	require.Len(t, done.Jobs, 1)
	require.Len(t, s.members["c"].effects, 1)
	require.Empty(t, s.members["c"].wanted)
}

func TestJobsClaimedForAPollerThatHasGoneAreReturned(t *testing.T) {
	s := newStage(t, "a", "b")
	a := s.members["a"]
	ctx, leave := context.WithCancel(soon(t))
	s.members["b"].before = func(ctx context.Context) {
		eventually(t, func() (claimed bool) {
			a.with(func() { claimed = len(a.wanted) > 0 })
			return claimed
		})
		leave()
		<-ctx.Done()
	}
	orders := engine.Orders{signal(s.taskOf("a")), signal(s.taskOf("b"))}
	_, err := a.router.Exchange(ctx, engine.Exchange{Orders: orders, Next: engine.Poll{Max: 2}})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, a.effects, 2)
	require.Equal(t, "a", a.effects[1].Command.(flow.GiveBack).Token)
}

func TestAnExchangeWithInvalidNamesIsRefusedAsAWhole(t *testing.T) {
	s := newStage(t, "a", "b")
	_, err := s.members["a"].router.Exchange(soon(t), engine.Exchange{Orders: engine.Orders{signal(s.taskOf("a")), signal(s.taskOf("b"))},
		Next: engine.Poll{Services: []string{strings.Repeat("x", 257)}}})
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
	require.Empty(t, s.members["a"].effects)
	require.Empty(t, s.members["b"].effects)
}
