package sim

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// gossipViews is what a member hears of the others: that may be old, or wrong in any way. The
// production router goes by it when it looks for whoever has a task, so it is shown to need no more
// than a hint. Who lives, when that decides whose jobs are taken over, and who owns what, when that
// decides who claims, is read from the store.
type gossipViews struct {
	*cluster.Keeper
	st      *simRun
	earlier []*cluster.View // true ones, the oldest first
	belief  *cluster.View   // nil = what is so
	until   time.Duration
	lied    bool // the last time
}

// mostEarlier is how many true views a stale one is drawn from.
const mostEarlier = 8

// Current is what the member believes, for a while.
func (g *gossipViews) Current() *cluster.View {
	w, truth := g.st.w, g.Keeper.Current()
	g.noteView(truth)
	if w.now >= g.until || g.st.isGossipTrue() {
		g.belief, g.until = nil, w.now+w.upTo(2*time.Second)
		// Where members only come and go nobody is to hear an error. A router that hears nothing
		// but lies for as long as it tries to reach somebody can only give up, so they hear the
		// truth in between.
		g.lied = !(g.st.planned && g.lied) && g.st.drawLie()
		if g.lied {
			g.belief = g.makeLie(truth)
		}
	}
	if g.belief == nil {
		return truth
	}
	believed := *g.belief
	believed.Generation = truth.Generation // who waits for a newer one is not told of it at once
	return &believed
}

func (g *gossipViews) noteView(truth *cluster.View) {
	if n := len(g.earlier); n > 0 && g.earlier[n-1] == truth {
		return
	}
	g.earlier = append(g.earlier, truth)
	g.earlier = g.earlier[max(0, len(g.earlier)-mostEarlier):]
}

// isGossipTrue reports whether gossip tells nothing wrong any more.
func (st *simRun) isGossipTrue() bool {
	if st.planned {
		return st.w.now >= restlessFor
	}
	return st.w.isCalm()
}

// drawLie reports whether gossip tells something wrong.
func (st *simRun) drawLie() bool {
	return !st.isGossipTrue() && st.w.faults.lies > 0 && st.w.drawChance(st.w.faults.lies)
}

// makeLie is a view that is not so, in one way or several.
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

// countLie counts what kind of lies there were.
func (g *gossipViews) countLie(kind string, v *cluster.View) *cluster.View {
	g.st.w.addTrace("gossip tells something %s", kind)
	if g.st.counts.Lies == nil {
		g.st.counts.Lies = map[string]int{}
	}
	g.st.counts.Lies[kind]++
	return v
}

// lies are what may be wrong with a view.
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

// distortCredits is what becomes of something that is told of a member's workers: that they take
// more jobs, or fewer, than they do.
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

// informedOthers is a member that takes nobody's jobs because of gossip: who lives it reads from
// the store.
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
