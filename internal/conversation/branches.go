package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// branching is the state of the branches of a function and of their waits. The mutex of the
// conversation guards it.
type branching struct {
	live     map[*Branch]bool
	running  int       // number of branches that neither wait nor have ended
	watchers []*Branch // branches that wait for others
	waits    []*Wait   // waits that have not ended, in the order of their begin
	unsent   []*Wait   // waits that the engine does not know yet
	sending  *time.Timer
	gaveUp   bool          // whether the function was given up and not resumed since
	replays  bool          // whether the function began with a history
	repeated chan struct{} // closed when no branch repeats steps; nil without a waiter
	idle     chan struct{} // closed when no branch runs; nil without a waiter
}

// group is a number of branches that were started together by one branch.
type group struct {
	parent   *Branch
	path     func(i int) string
	run      func(i int, b *Branch)
	size     int
	branches []*Branch // started branches, by number
	left     int       // number of branches that have not ended
	returned int       // number of branches whose function has returned
	winner   int       // the only branch that may continue after its history; -1 means all
}

// Promise is a branch that was started by Branch.Go.
type Promise struct{ g *group }

// Go starts a branch.
func (b *Branch) Go(name string, run func(b *Branch)) *Promise {
	path := b.path + b.placeOf(name) + "/"
	g := &group{parent: b, size: 1, left: 1, winner: -1, path: func(int) string { return path },
		run: func(_ int, b *Branch) { run(b) }}
	g.startBranches(1)
	return &Promise{g}
}

// Await returns when the branch of the promise has returned. Any branch may call it.
func (p *Promise) Await(b *Branch) { b.awaitGroup(p.g) }

// Each calls a function in n branches, in at most atOnce of them at a time, and returns when all
// have returned.
func (b *Branch) Each(name string, n, atOnce int, run func(i int, b *Branch)) {
	g := b.newGroup(b.placeOf(name), n, run)
	g.startBranches(max(atOnce, 1))
	b.awaitGroup(g)
}

// Race calls a function in n branches and returns the number of the winner: the returned branch
// whose last result was recorded first. The other branches are canceled, and their waits are
// withdrawn.
func (b *Branch) Race(name string, n int, run func(i int, b *Branch)) (winner int) {
	checkName(name)
	s := &Step{Name: b.path + name, Use: b.useOf(name), Kind: Race}
	place := numberedName(name, s.Use)
	g := b.newGroup(place, n, run)
	if b.at < len(b.history) && b.history[b.at].Kind != Undo {
		s, _ = b.takeStep(s)
		return b.repeatRace(g, s)
	}
	g.startBranches(n)
	b.waitUntil(func() bool { winner = g.findWinner(); return winner >= 0 || g.left == 0 })
	if winner < 0 || b.c.undoes {
		b.endGoroutine()
	}
	b.c.mu.Lock()
	b.c.cancelBranches(b.path + place + "/")
	b.c.mu.Unlock()
	s.Output = json.RawMessage(strconv.Itoa(winner))
	s.StartedAt = b.c.host.Now().UnixMilli()
	b.recordResult(s)
	return winner
}

// repeatRace repeats the recorded steps of the branches of a race, and returns the recorded winner.
func (b *Branch) repeatRace(g *group, s *Step) (winner int) {
	winner, err := strconv.Atoi(string(s.Output))
	if err != nil || winner < 0 || winner >= g.size {
		b.c.haltFunction(Outcome{Held: fmt.Sprintf("nondeterministic: at step %s the history has branch %s, the code has %d branches",
			s.Place(), s.Output, g.size)})
	}
	g.winner = winner
	g.startBranches(g.size)
	b.waitUntil(func() bool { return g.left == 0 || g.branches[winner].returned && !g.isRepeating() })
	if !g.branches[winner].returned {
		b.endGoroutine()
	}
	return winner
}

// placeOf returns the name of a group of branches. Each further use of a name gets a number.
func (b *Branch) placeOf(name string) string {
	checkName(name)
	return numberedName(name, b.useOf(name))
}

func (b *Branch) newGroup(place string, n int, run func(i int, b *Branch)) *group {
	return &group{parent: b, size: n, left: n, winner: -1, run: run,
		path: func(i int) string { return b.path + place + "/" + strconv.Itoa(i) + "/" }}
}

// startBranches starts up to n more branches of the group.
func (g *group) startBranches(n int) {
	c := g.parent.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for range min(n, g.size) {
		g.startNext()
	}
}

// startNext starts the next branch of the group, unless the parent branch was canceled. The caller
// holds the mutex.
func (g *group) startNext() {
	for len(g.branches) < g.size {
		i := len(g.branches)
		b := g.parent.c.newBranch(g.parent, g.path(i))
		b.group, b.spent = g, g.parent.spent || g.winner >= 0 && g.winner != i
		g.branches = append(g.branches, b)
		if b.ctx.Err() == nil {
			g.parent.c.startBranch(b, func() {
				g.run(i, b)
				b.c.mu.Lock()
				defer b.c.mu.Unlock()
				b.returned = true
				g.returned++
			})
			return
		}
		g.left--
	}
}

// isRepeating reports whether a branch of the group, or an inner branch, still repeats its recorded
// steps. The caller holds the mutex.
func (g *group) isRepeating() bool {
	return slices.ContainsFunc(g.branches, func(b *Branch) bool { return b.spent && g.parent.c.isGoing(b.path) })
}

// isGoing reports whether a branch below a path neither waits nor carries out a step. The caller
// holds the mutex.
func (c *Conversation) isGoing(path string) bool {
	for b := range c.live {
		if b != c.main && strings.HasPrefix(b.path, path) && !b.busy && (!b.blocked || b.until != nil && b.until()) {
			return true
		}
	}
	return false
}

// findWinner returns the number of the winning branch, or -1 if the winner is not certain yet. A
// branch with an earlier result that is about to ask for its next step may still return. The caller
// holds the mutex.
func (g *group) findWinner() int {
	winner := -1
	for i, b := range g.branches {
		if b.returned && (winner < 0 || b.last < g.branches[winner].last) {
			winner = i
		}
	}
	for _, b := range g.branches {
		if winner >= 0 && !b.ended && !b.blocked && !b.busy && b.last < g.branches[winner].last {
			return -1
		}
	}
	return winner
}

// awaitGroup returns when all branches of a group have returned.
func (b *Branch) awaitGroup(g *group) {
	b.waitUntil(func() bool { return g.left == 0 })
	if g.returned < g.size {
		b.endGoroutine()
	}
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	for _, one := range g.branches {
		b.last = max(b.last, one.last)
	}
}

// startBranch starts the goroutine of a branch. The caller holds the mutex.
func (c *Conversation) startBranch(b *Branch, run func()) {
	if c.live == nil {
		c.live = map[*Branch]bool{}
	}
	c.live[b] = true
	c.running++
	go func() { // ends with its function, at the latest when the function asks for its next step
		defer c.exitBranch(b)
		run()
	}()
}

// exitBranch ends a branch whose goroutine ends, and the branches started by the branch.
func (c *Conversation) exitBranch(b *Branch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, b)
	b.ended = true
	if b.blocked {
		c.watchers = slices.DeleteFunc(c.watchers, func(w *Branch) bool { return w == b })
		c.forgetWaits(func(w *Wait) bool { return w.branch == b })
	} else {
		c.running--
	}
	if b != c.main {
		b.cancel()
	}
	if b.group != nil {
		b.group.left--
		b.group.startNext()
	}
	c.noteChange()
}

// cancelBranches cancels the branches below a path, and forgets their waits. The caller holds the
// mutex.
func (c *Conversation) cancelBranches(path string) {
	for b := range c.live {
		if b != c.main && strings.HasPrefix(b.path, path) {
			b.cancel()
			if !b.returned {
				c.cut = append(c.cut, b.path)
			}
		}
	}
	c.forgetWaits(func(w *Wait) bool { return w.branch != c.main && strings.HasPrefix(w.branch.path, path) })
}

func (c *Conversation) forgetWaits(which func(w *Wait) bool) {
	c.waits = slices.DeleteFunc(c.waits, which)
	c.unsent = slices.DeleteFunc(c.unsent, which)
}

// repeatBranches returns when all branches of an ended function have repeated their recorded steps,
// and ended after them. It returns at once if no branch has recorded steps.
func (c *Conversation) repeatBranches() {
	c.mu.Lock()
	for b := range c.live {
		b.spent = b.spent || b != c.main
	}
	repeated := make(chan struct{})
	if c.replays {
		c.repeated = repeated
		c.noteChange()
	} else {
		close(repeated)
	}
	c.mu.Unlock()
	limit := time.NewTimer(repeatGrace)
	defer limit.Stop()
	select {
	case <-repeated:
	case <-limit.C:
	case <-c.stop:
	case <-c.ctx.Done():
	}
}

// repeatGrace is the time that branches may take to repeat their steps when the function has ended.
// After this time their contexts are canceled.
const repeatGrace = 5 * time.Second

// stopBranches cancels all branches of an ended function, and returns when no branch runs.
func (c *Conversation) stopBranches() {
	c.mu.Lock()
	c.cancelBranches("")
	idle := make(chan struct{})
	c.idle = idle
	c.noteChange()
	c.mu.Unlock()
	select {
	case <-idle:
	case <-c.stop:
	case <-c.ctx.Done():
	}
}

// waitUntil blocks the branch until a condition holds. The condition is called with the mutex held.
func (b *Branch) waitUntil(done func() bool) {
	c := b.c
	c.mu.Lock()
	if done() {
		c.mu.Unlock()
		return
	}
	woken := make(chan struct{})
	b.until, b.woken = done, woken
	c.watchers = append(c.watchers, b)
	c.blockBranch(b)
	c.mu.Unlock()
	select {
	case <-woken:
	case <-b.ctx.Done():
		b.endGoroutine()
	}
}

// blockBranch counts a branch as waiting. The caller holds the mutex.
func (c *Conversation) blockBranch(b *Branch) {
	b.blocked = true
	c.running--
	c.noteChange()
}

// unblockBranch counts a branch as running again, before it runs. The caller holds the mutex.
func (c *Conversation) unblockBranch(b *Branch) {
	b.blocked, b.until = false, nil
	c.running++
}

// setBusy notes that a branch carries out a step.
func (b *Branch) setBusy(busy bool) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.busy = busy
	b.c.noteChange()
}

// noteChange wakes the branches whose condition holds. If no branch runs, the function only waits,
// or has repeated its whole history. The caller holds the mutex.
func (c *Conversation) noteChange() {
	for i := 0; i < len(c.watchers); i++ {
		if b := c.watchers[i]; b.until() {
			c.watchers = slices.Delete(c.watchers, i, i+1)
			c.unblockBranch(b)
			close(b.woken)
			i = -1 // the branch may have changed the condition of another branch
		}
	}
	if c.repeated != nil && !c.isGoing("") {
		close(c.repeated)
		c.repeated = nil
	}
	switch {
	case c.running > 0 || c.storing:
		return
	case c.idle != nil:
		close(c.idle)
		c.idle = nil
	case c.undoes:
		c.unwinds.Do(func() { close(c.unwound) })
	case len(c.waits) > 0:
		select {
		case c.rested <- struct{}{}:
		default:
		}
	}
}

// Recover calls the function of a branch. A panic becomes the returned error.
func Recover(run func() error) error {
	_, err, _ := callRecovering(func() (json.RawMessage, error) { return nil, run() })
	return err
}
