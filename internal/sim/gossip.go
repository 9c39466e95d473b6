package sim

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// gossip is what a member hears of the others: that may be old, or wrong in any way. The production router goes by it when it looks for whoever
// has a task, so it is shown to need no more than a hint. Who lives, when that decides whose jobs are taken over, and who owns what, when that
// decides who claims, is read from the store.
type gossip struct {
	*cluster.Keeper
	st      *stage
	earlier []*cluster.View // true ones, the oldest first
	belief  *cluster.View   // nil = what is so
	until   time.Duration
	lied    bool // the last time
}

// mostEarlier is how many true views a stale one is drawn from.
const mostEarlier = 8

// Current is what the member believes, for a while.
func (g *gossip) Current() *cluster.View {
	w, truth := g.st.w, g.Keeper.Current()
	g.note(truth)
	if w.now >= g.until || g.st.honest() {
		g.belief, g.until = nil, w.now+w.upTo(2*time.Second)
		// Where members only come and go nobody is to hear an error. A router that hears nothing but lies for as long as it tries to reach somebody can
		// only give up, so they hear the truth in between.
		g.lied = !(g.st.planned && g.lied) && g.st.lies()
		if g.lied {
			g.belief = g.lie(truth)
		}
	}
	if g.belief == nil {
		return truth
	}
	believed := *g.belief
	believed.Generation = truth.Generation // who waits for a newer one is not told of it at once
	return &believed
}

func (g *gossip) note(truth *cluster.View) {
	if n := len(g.earlier); n > 0 && g.earlier[n-1] == truth {
		return
	}
	g.earlier = append(g.earlier, truth)
	g.earlier = g.earlier[max(0, len(g.earlier)-mostEarlier):]
}

// honest says whether gossip tells nothing wrong any more.
func (st *stage) honest() bool {
	if st.planned {
		return st.w.now >= restlessFor
	}
	return st.w.clear()
}

// lies says whether gossip tells something wrong.
func (st *stage) lies() bool {
	return !st.honest() && st.w.weather.lies > 0 && st.w.chance(st.w.weather.lies)
}

// lie is a view that is not so, in one way or several.
func (g *gossip) lie(truth *cluster.View) *cluster.View {
	w := g.st.w
	if w.chance(200) {
		return g.told("stale", pick(w.rng, g.earlier...))
	}
	if w.chance(100) {
		return g.told("empty", cluster.NewView(&persistence.Cluster{Owners: make([]string, persistence.Shards)}))
	}
	c := &persistence.Cluster{Now: truth.Now.UnixMilli(), Members: slices.Clone(truth.Members), Owners: slices.Clone(truth.Owners)}
	for _, way := range lies {
		if w.chance(400) {
			g.told(way.name, nil)
			way.twist(w, c)
		}
	}
	return cluster.NewView(c)
}

// told counts what kind of lies there were.
func (g *gossip) told(kind string, v *cluster.View) *cluster.View {
	g.st.w.say("gossip tells something %s", kind)
	if g.st.seen.Lies == nil {
		g.st.seen.Lies = map[string]int{}
	}
	g.st.seen.Lies[kind]++
	return v
}

// lies are what may be wrong with a view.
var lies = []struct {
	name  string
	twist func(w *world, c *persistence.Cluster)
}{
	{"of dead ones that live", func(w *world, c *persistence.Cluster) {
		for i := range c.Members {
			if w.chance(700) {
				c.Members[i].FencedAt = 0
			}
		}
	}},
	{"of live ones that are dead", func(w *world, c *persistence.Cluster) {
		for i := range c.Members {
			if c.Members[i].FencedAt == 0 && w.chance(500) {
				c.Members[i].FencedAt = max(c.Now, 1)
			}
		}
	}},
	{"of other owners", func(w *world, c *persistence.Cluster) {
		for at := 0; at < len(c.Owners) && len(c.Members) > 0; {
			owner := pick(w.rng, c.Members...).Incarnation
			for to := min(len(c.Owners), at+1+w.rng.IntN(200)); at < to; at++ {
				c.Owners[at] = owner
			}
		}
	}},
	{"of other addresses", func(w *world, c *persistence.Cluster) {
		for i := range c.Members {
			c.Members[i].URL = pick(w.rng, c.Members...).URL
		}
	}},
	{"of other formats", func(w *world, c *persistence.Cluster) {
		for i := range c.Members {
			c.Members[i].Format = w.rng.IntN(100)
		}
	}},
}

// rumor is what becomes of something that is told of a member's workers: that they take more jobs, or fewer, than they do.
func (st *stage) rumor(m engine.Message) engine.Message {
	c, ok := m.(*engine.Credits)
	if !ok || !st.lies() {
		return m
	}
	wrong := *c
	wrong.List = slices.Clone(c.List)
	for i := range wrong.List {
		wrong.List[i].Free = st.w.rng.IntN(20)
	}
	return &wrong
}

// informed is a member that takes nobody's jobs because of gossip: who lives it reads from the store.
type informed struct {
	actors.Others
	c *clusterMember
}

func (i informed) Alive() (alive []string) {
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
