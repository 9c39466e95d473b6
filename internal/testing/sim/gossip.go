package sim

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// gossipViews is a member's view of the others by gossip; it may be outdated or wrong in any way.
// The production router uses the view to find the owner of a task. So the simulation shows that the
// router needs the view only as a hint. Liveness for take-overs of jobs, and ownership for claims,
// are read from the store instead.
type gossipViews struct {
	*cluster.Keeper
	st      *simRun
	earlier []*cluster.View // earlier true views, oldest first
	belief  *cluster.View   // nil if the view is true
	until   time.Duration
	lied    bool // the last view was false
}

// mostEarlier is the number of true views from which an outdated view is drawn.
const mostEarlier = 8

// Current returns the view that the member believes for a while.
func (g *gossipViews) Current() *cluster.View {
	w, truth := g.st.w, g.Keeper.Current()
	g.noteView(truth)
	if w.now >= g.until || g.st.isGossipTrue() {
		g.belief, g.until = nil, w.now+w.upTo(2*time.Second)
		// If members only join and leave, callers must see no errors. A router with only false
		// views in all its tries has to give up, so true views are inserted between the false ones.
		g.lied = !(g.st.planned && g.lied) && g.st.drawLie()
		if g.lied {
			g.belief = g.makeLie(truth)
		}
	}
	if g.belief == nil {
		return truth
	}
	believed := *g.belief
	believed.Generation = truth.Generation // callers waiting for a newer view are not woken at once
	return &believed
}

func (g *gossipViews) noteView(truth *cluster.View) {
	if n := len(g.earlier); n > 0 && g.earlier[n-1] == truth {
		return
	}
	g.earlier = append(g.earlier, truth)
	g.earlier = g.earlier[max(0, len(g.earlier)-mostEarlier):]
}

// isGossipTrue reports whether gossip is always correct from now on.
func (st *simRun) isGossipTrue() bool {
	if st.planned {
		return st.w.now >= restlessFor
	}
	return st.w.isCalm()
}

// drawLie reports whether gossip is wrong now.
func (st *simRun) drawLie() bool {
	return !st.isGossipTrue() && st.w.faults.lies > 0 && st.w.drawChance(st.w.faults.lies)
}

// makeLie returns a view that is wrong in at least one way.
func (g *gossipViews) makeLie(truth *cluster.View) *cluster.View {
	w := g.st.w
	if w.drawChance(200) {
		return g.countLie("stale", pickOne(w.rng, g.earlier...))
	}
	if w.drawChance(100) {
		return g.countLie("empty", cluster.NewView(&persistence.Cluster{Owners: make([]string, persistence.Shards)}))
	}
	c := &persistence.Cluster{Now: truth.Now.UnixMilli(), Members: slices.Clone(truth.Members), Owners: slices.Clone(truth.Owners)}
	for _, way := range lies {
		if w.drawChance(400) {
			g.countLie(way.name, nil)
			way.twist(w, c)
		}
	}
	return cluster.NewView(c)
}

// countLie counts false views by kind.
func (g *gossipViews) countLie(kind string, v *cluster.View) *cluster.View {
	g.st.w.addTrace("gossip tells something %s", kind)
	if g.st.counts.Lies == nil {
		g.st.counts.Lies = map[string]int{}
	}
	g.st.counts.Lies[kind]++
	return v
}

// lies are the ways in which a view can be wrong.
var lies = []struct {
	name  string
	twist func(w *simWorld, c *persistence.Cluster)
}{
	{"of dead ones that live", func(w *simWorld, c *persistence.Cluster) {
		for i := range c.Members {
			if w.drawChance(700) {
				c.Members[i].FencedAt = 0
			}
		}
	}},
	{"of live ones that are dead", func(w *simWorld, c *persistence.Cluster) {
		for i := range c.Members {
			if c.Members[i].FencedAt == 0 && w.drawChance(500) {
				c.Members[i].FencedAt = max(c.Now, 1)
			}
		}
	}},
	{"of other owners", func(w *simWorld, c *persistence.Cluster) {
		for at := 0; at < len(c.Owners) && len(c.Members) > 0; {
			owner := pickOne(w.rng, c.Members...).Incarnation
			for to := min(len(c.Owners), at+1+w.rng.IntN(200)); at < to; at++ {
				c.Owners[at] = owner
			}
		}
	}},
	{"of other addresses", func(w *simWorld, c *persistence.Cluster) {
		for i := range c.Members {
			c.Members[i].URL = pickOne(w.rng, c.Members...).URL
		}
	}},
	{"of other formats", func(w *simWorld, c *persistence.Cluster) {
		for i := range c.Members {
			c.Members[i].Format = w.rng.IntN(100)
		}
	}},
}

// distortCredits may increase or decrease the credits in a message about a member's workers.
func (st *simRun) distortCredits(m engine.Message) engine.Message {
	c, ok := m.(*engine.Credits)
	if !ok || !st.drawLie() {
		return m
	}
	wrong := *c
	wrong.List = slices.Clone(c.List)
	for i := range wrong.List {
		wrong.List[i].Free = st.w.rng.IntN(20)
	}
	return &wrong
}

// informedOthers decides about take-overs of jobs by the store and not by gossip.
type informedOthers struct {
	actors.Others
	c *clusterMember
}

func (i informedOthers) Alive() (alive []string) {
	if i.c.keeper == nil {
		return nil
	}
	for _, m := range i.c.keeper.Current().Living() {
		if m.Incarnation != i.c.me {
			alive = append(alive, m.Incarnation)
		}
	}
	return alive
}
