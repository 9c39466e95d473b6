package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fault is a fault of a cluster.
type fault struct {
	kind   kind
	member int           // affected member, if there is one
	after  time.Duration // pause since the end of the last fault
	length time.Duration // duration
}

type kind struct {
	name     string
	from, to time.Duration // range of the duration
	happen   func(ctx context.Context, c *testCluster, f fault) error
	peers    bool // it needs other members
	alone    bool // it has a test of its own here
}

func (f fault) String() string {
	return fmt.Sprintf("%s (member-%d, after %v, for %v)", f.kind.name, f.member, f.after, f.length)
}

// The bounds are longer than twice the lease, so other members take over in the meantime.
const shortest, longest = 3500 * time.Millisecond, 6 * time.Second

var faultKinds = []kind{
	{name: "killed", to: 1500 * time.Millisecond, happen: killed, alone: true},
	{name: "frozen", from: shortest, to: longest, happen: frozen, alone: true},
	{name: "cut off from the others", from: shortest, to: longest, happen: cutOff(peers), peers: true, alone: true},
	{name: "cut off from the store", from: shortest, to: longest, happen: cutOff(store)},
	{name: "cut off from both", from: shortest, to: longest, happen: cutOff(peers, store), peers: true},
	{name: "the store crashes", to: 3 * time.Second, happen: storeCrashes},
	{name: "the store is restarted", happen: storeRestarts},
	{name: "the store is silent", happen: storeIsSilent},
	{name: "packets to the store vanish", happen: packetsVanish},
	{name: "all are restarted in turn", happen: allRestart, alone: true},
}

// kindOf returns the kind with a name.
func kindOf(name string) kind {
	return faultKinds[slices.IndexFunc(faultKinds, func(k kind) bool { return k.name == name })]
}

// drawFaults draws n faults for a number of members. Each kind occurs once before any repeats.
func drawFaults(rng *rand.Rand, n, members int) []fault {
	possible := slices.DeleteFunc(slices.Clone(faultKinds), func(k kind) bool { return k.peers && members == 1 })
	var list []fault
	for len(list) < n {
		for _, k := range deal(rng, possible, n-len(list)) {
			list = append(list, fault{kind: k, member: rng.IntN(members), after: between(rng, 300*time.Millisecond, 1500*time.Millisecond),
				length: between(rng, k.from, k.to)})
		}
	}
	return list
}

// deal shuffles kinds. If there are too many, it omits first those with a test of their own.
func deal(rng *rand.Rand, kinds []kind, wanted int) []kind {
	deck := slices.Clone(kinds)
	rng.Shuffle(len(deck), func(i, k int) { deck[i], deck[k] = deck[k], deck[i] })
	for i := len(deck) - 1; i >= 0 && len(deck) > wanted; i-- {
		if deck[i].alone {
			deck = slices.Delete(deck, i, i+1)
		}
	}
	return deck[:min(wanted, len(deck))]
}

// between draws a duration in whole milliseconds.
func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	if to <= from {
		return from
	}
	return from + time.Duration(rng.Int64N(int64((to-from)/time.Millisecond)))*time.Millisecond
}

// suffer applies a fault and waits until all members accept work again.
func (c *testCluster) suffer(ctx context.Context, f fault) error {
	pause(ctx, f.after)
	c.log.write("%s", f)
	if err := f.kind.happen(ctx, c, f); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	c.log.write("is over")
	if err := c.settle(ctx); err != nil {
		return fmt.Errorf("after %s: %w", f, err)
	}
	c.log.write("all members are ready")
	return nil
}

func killed(ctx context.Context, c *testCluster, f fault) error {
	c.members[f.member].kill()
	pause(ctx, f.length)
	return c.members[f.member].start()
}

func frozen(ctx context.Context, c *testCluster, f fault) error {
	p := c.members[f.member].running()
	if err := p.Freeze(); err != nil {
		return err
	}
	pause(ctx, f.length)
	return p.Thaw()
}

func cutOff(from ...link) func(ctx context.Context, c *testCluster, f fault) error {
	return func(ctx context.Context, c *testCluster, f fault) error {
		if err := each(len(from), func(k int) error { return c.cut(f.member, from[k]) }); err != nil {
			return err
		}
		pause(ctx, f.length)
		return each(len(from), func(k int) error { return c.heal(f.member, from[k]) })
	}
}

func storeCrashes(ctx context.Context, c *testCluster, f fault) error {
	if err := c.server.Kill(); err != nil {
		return err
	}
	pause(ctx, f.length)
	return c.server.Restart(ctx)
}

func storeRestarts(ctx context.Context, c *testCluster, _ fault) error { return c.server.Restart(ctx) }

// storeIsSilent freezes the store until every member has noticed, and checks that each refuses new
// tasks.
func storeIsSilent(ctx context.Context, c *testCluster, _ fault) error {
	if err := c.server.Freeze(); err != nil {
		return err
	}
	return errors.Join(c.checkRefusals(ctx), c.server.Thaw())
}

// packetsVanish has all packets vanish between members and the store, whose connections stay open,
// until every member knows, and has each refuse what it cannot store.
func packetsVanish(ctx context.Context, c *testCluster, _ fault) error {
	err := each(len(c.members), func(i int) error { return c.cut(i, store) })
	err = errors.Join(err, c.checkRefusals(ctx))
	return errors.Join(err, each(len(c.members), func(i int) error { return c.heal(i, store) }))
}

// checkRefusals returns an error unless every member refuses a task soon after it knows that the
// store is away.
func (c *testCluster) checkRefusals(ctx context.Context) error {
	return each(len(c.members), func(i int) error {
		_, err := c.refusesSoon(ctx, c.members[i])
		return err
	})
}

// allRestart restarts the members gracefully, one after the other.
func allRestart(ctx context.Context, c *testCluster, _ fault) error {
	for _, m := range c.members {
		if err := m.stop(); err != nil {
			return err
		}
		if err := m.start(); err != nil {
			return err
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func TestSeedDrawsTheSameFaultsAndEachKindOnce(t *testing.T) {
	draw := func(seed uint64, members int) (text []string, names []string) {
		for _, f := range drawFaults(rand.New(rand.NewPCG(seed, 0)), 2*len(faultKinds), members) {
			text, names = append(text, f.String()), append(names, f.kind.name)
		}
		return text, names
	}
	first, names := draw(1, 3)
	again, _ := draw(1, 3)
	other, _ := draw(2, 3)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
	for _, k := range faultKinds {
		require.Contains(t, names[:len(faultKinds)], k.name)
	}
	_, alone := draw(1, 1)
	require.NotContains(t, alone, "cut off from the others")
}

func TestShortPlanHasAllKindsWithoutATestOfTheirOwn(t *testing.T) {
	for seed := range uint64(100) {
		var names []string
		for _, f := range drawFaults(rand.New(rand.NewPCG(seed, 0)), fewFaults, theMembers) {
			names = append(names, f.kind.name)
		}
		require.Len(t, names, fewFaults)
		for _, k := range faultKinds {
			require.True(t, k.alone || slices.Contains(names, k.name), "seed %d: %s is missing in %v", seed, k.name, names)
		}
	}
}
