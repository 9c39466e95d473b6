package sim

import (
	"context"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/cluster"
	base "github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// clusterMember is a member's part of the cluster: the production keeper and router, simulated
// links to the other members, and gossip that may be arbitrarily wrong.
type clusterMember struct {
	st     *simRun
	h      *host
	me     string // incarnation
	router *cluster.Router
	keeper *cluster.Keeper // nil until the member has joined
	stop   context.CancelFunc
}

func (h *host) baseHost() base.Host {
	return base.Host{Go: h.runBackground, Clock: h, Park: h.w.parkUntil}
}

// newClusterMember creates the cluster part before the member, because the member needs the cluster
// part.
func (st *simRun) newClusterMember(h *host, store persistence.Store, reader *persistence.Reader) *clusterMember {
	c := &clusterMember{st: st, h: h}
	c.router = cluster.NewRouter(cluster.RouterConfig{Peers: &peerLinks{st: st, h: h}, Journals: store, Plans: reader, Host: h.baseHost()})
	return c
}

// joinCluster joins the cluster.
func (c *clusterMember) joinCluster(m *actors.Member, store persistence.Store) {
	c.keeper = cluster.NewKeeper(cluster.KeeperConfig{Store: store, Local: m, Announce: c.sendHints, Log: c.st.log, Host: c.h.baseHost()})
	c.me = m.Incarnation()
	c.router.Start(c.me, m, &gossipViews{Keeper: c.keeper, st: c.st})
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.h.runBackground(func() {
		if err := c.keeper.Run(ctx); err != nil {
			c.st.w.addTrace("the keeper of %s ends: %v", m.Incarnation(), err)
		}
	})
}

// forwardPulse forwards the result of a lease renewal.
func (c *clusterMember) forwardPulse(p persistence.Pulse) {
	if c.keeper != nil {
		c.keeper.Pulse(p)
	}
}

// sendHints sends hints to other members: soon, late, or never, like gossip.
func (c *clusterMember) sendHints() {
	for _, other := range c.st.activeMembers {
		if other.clusterMember != c && !c.st.w.drawFault(c.st.w.faults.rumors) {
			other.scheduleLook()
		}
	}
}

// scheduleLook schedules a look at the store after a true or false hint.
func (a *simMember) scheduleLook() {
	a.h.AfterFunc(a.st.w.upTo(a.st.w.faults.latency), a.keeper.Look)
}

// leaveCluster ends the cluster part of a member that has ended or is ending.
func (c *clusterMember) leaveCluster() {
	if c.stop != nil {
		c.stop()
	}
	c.router.Close()
}
