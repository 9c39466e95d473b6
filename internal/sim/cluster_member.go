package sim

import (
	"context"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/cluster"
	base "github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// clusterMember is what a member has of its cluster: the production keeper and router, with the world's lines to the others and
// a gossip that may say anything.
type clusterMember struct {
	st     *stage
	h      *host
	me     string // incarnation
	router *cluster.Router
	keeper *cluster.Keeper // nil until the member has joined
	stop   context.CancelFunc
}

func (h *host) ground() base.Host {
	return base.Host{Go: h.background, Clock: h, Park: h.w.park}
}

// newClusterMember comes before the member, which has to know of it.
func (st *stage) newClusterMember(h *host, store persistence.Store, reader *persistence.Reader) *clusterMember {
	c := &clusterMember{st: st, h: h}
	c.router = cluster.NewRouter(cluster.RouterConfig{Peers: &lines{st: st, h: h}, Journals: store, Plans: reader, Host: h.ground()})
	return c
}

// join has a member take its part.
func (c *clusterMember) join(m *actors.Member, store persistence.Store) {
	c.keeper = cluster.NewKeeper(cluster.KeeperConfig{Store: store, Local: m, Announce: c.announce, Log: c.st.log, Host: c.h.ground()})
	c.me = m.Incarnation()
	c.router.Start(c.me, m, &gossip{Keeper: c.keeper, st: c.st})
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.h.background(func() {
		if err := c.keeper.Run(ctx); err != nil {
			c.st.w.say("the keeper of %s ends: %v", m.Incarnation(), err)
		}
	})
}

// pulse passes on what a renewal of the lease told.
func (c *clusterMember) pulse(p persistence.Pulse) {
	if c.keeper != nil {
		c.keeper.Pulse(p)
	}
}

// announce has other members look soon, or late, or not at all: it is gossip.
func (c *clusterMember) announce() {
	for _, other := range c.st.troupe {
		if other.clusterMember != c && !c.st.w.mishap(c.st.w.weather.rumors) {
			other.hint()
		}
	}
}

// hint is something that is heard of others, true or not.
func (a *actor) hint() {
	a.h.AfterFunc(a.st.w.upTo(a.st.w.weather.latency), a.keeper.Look)
}

// end lets go of the others. The member has gone, or goes.
func (c *clusterMember) end() {
	if c.stop != nil {
		c.stop()
	}
	c.router.Close()
}
