package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/actors/attached"
	"github.com/troupe-engine/troupe/actors/schedule"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// simRun is a run with everybody on it.
type simRun struct {
	w               *simWorld
	store           *storeModel
	check           *commitChecker
	outside         *host // where users, pollers and the operator are; it never fails
	users           []*simUser
	counts          Result            // what there was of some things
	attachedWorkers []*attachedWorker // workers that attach
	workers         registrationTimes // those that are attached
	attaches        bool              // members have sessions of such
	publisher       *flowPublisher    // nil when no flow is deleted
	externalSystem  *externalSystem
	timetable       *scheduleUser // nil when nothing begins by the clock
	limits          flow.Limits
	visibility      time.Duration
	wrapStore       func(persistence.Store) persistence.Store // puts a defect between the door and the model
	options         Options
	damage          func(*flow.Plan)
	cluster         bool         // members live beside each other
	planned         bool         // they come and go, and nothing else happens to them
	activeMembers   []*simMember // members that may be asked, the newest last
	allMembers      []*simMember // members that ever were
	log             *slog.Logger
	members         int
	requests        int
	runDone         bool
	deletes         bool // flows are deleted meanwhile
	reconnects      bool // a store that went back is reached over new connections only
	steady          bool // it goes back no more
	shrinks         bool // members that come later have smaller limits, which decide how tasks end
}

// simMember is a member and the host it lives on.
type simMember struct {
	*actors.Member
	*clusterMember // nil: it is alone
	st             *simRun
	h              *host
	sessions       *attached.Sessions // nil: nobody attaches
	grace          time.Duration      // of a session
	fickle         *fickleRelay       // nil: it is not
	timer          *schedule.Runner   // nil: there are no schedules
	ends           bool               // it lets go of what it carries
}

// outsideEngine is whom those outside ask.
func (a *simMember) outsideEngine() engine.Engine {
	if a.clusterMember == nil {
		return remoteEngine{a.Member, nil}
	}
	return remoteEngine{a.router, a.h}
}

// Options say what kind of run it is.
type Options struct {
	Plain    bool                                      // chains of steps and no mishap at all
	Store    func(persistence.Store) persistence.Store // puts a defect in front of the store
	Unfenced bool                                      // the store lets everybody write who ever was a member
	Generous bool                                      // the store gives more permits than there are
	Orphans  bool                                      // the store lets tasks of deleted flows begin
	Plan     func(*flow.Plan)                          // puts a defect into what flows are compiled to
	Cluster  bool                                      // several members
	Planned  bool                                      // of them nothing but planned moves
	Rewinds  bool                                      // the store goes back in time
	Unseen   bool                                      // a defect: members are not told anything by which they could notice that

	// Further defects, of clusters.
	Nameless  bool // what one member asks of another loses its request id
	Oblivious bool // members take it that nobody else lives
	Gullible  bool // members take it that those live whom gossip says to live
	Timeless  bool // what one member tells another of a lost job leaves out which time of its being given that was

	// Of work abroad.
	Unaware bool // who begins it is not told that it may have begun before

	// Of schedules.
	Clock   bool // there is one, in any case
	Keyless bool // the task of a slot is not recognized when it begins once more

	// And of workers that attach.
	Fickle bool // what they have goes to others while their sessions go on
	Greedy bool // they are given one job more than they take

	Stacks bool // tell where those wait who are stuck
}

// Result tells how a run went.
type Result struct {
	Err      error          // the first promise that was broken
	Hash     uint64         // of everything that happened
	Steps    int            // scheduled
	Tasks    int            //
	Members  int            // started
	Trips    int            // of step actors in the middle of their work
	Given    int            // jobs, to workers that attach
	Passed   int            // jobs, from one member to another
	Resumed  int            // sessions
	Moved    int            // sessions with jobs, to another member
	Over     int            // sessions with jobs that others have got
	Abroad   int            // pieces of work, begun in another system
	Found    int            // there, by who begins them once more
	Followed int            // looks at them by members that have not begun them
	Slots    int            // that had a task
	Rewinds  int            // of the store
	Lies     map[string]int // of gossip, by what they were about
	Trace    []string       // the last lines
}

// Bounds of a run: nothing may take longer once the weather is calm.
const (
	maxSteps  = 300_000
	afterCalm = 10 * time.Minute
)

// endless is a limit that nothing reaches.
const endless = 1 << 30

// Run plays one seed.
func Run(seed uint64, o Options) Result {
	w := newWorld(seed)
	if o.Plain {
		w.faults = faultRates{latency: w.faults.latency}
	}
	w.stacks = o.Stacks
	uuid.SetRand(idGenerator{w})
	defer uuid.SetRand(nil)
	if o.Cluster {
		w.faults.ofCluster(w.rng)
	}
	if o.Planned {
		w.faults = faultRates{latency: w.faults.latency, lies: w.faults.lies}
	}
	st := newStage(w, o)
	st.runToEnd()
	w.unwindAll()
	r := st.counts
	r.Err, r.Hash, r.Steps, r.Tasks, r.Members, r.Trips, r.Trace = w.failure, w.hash, w.steps, len(st.users), st.members, w.trips, w.trace
	return r
}

// idGenerator is where ids and tokens come from.
type idGenerator struct{ w *simWorld }

func (g idGenerator) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(g.w.rng.Uint32())
	}
	return len(b), nil
}

func newStage(w *simWorld, o Options) *simRun {
	st := &simRun{w: w, store: newModel(w), check: newChecker(w), options: o, wrapStore: o.Store, damage: o.Plan, visibility: time.Duration(300+w.rng.IntN(4000)) * time.Millisecond}
	st.store.check, st.check.store, st.store.unfenced, st.store.orphans, st.store.generous = st.check, st.store, o.Unfenced, o.Orphans, o.Generous
	st.attaches, st.workers = o.Cluster || w.drawChance(500), registrationTimes{}
	st.cluster, st.planned, st.log = o.Cluster, o.Planned, slog.New(slog.DiscardHandler)
	st.check.limits, st.check.planned, st.check.onJobMoved = &st.limits, st.planned, st.noteJobMoved
	st.outside = w.newHost("outside")
	st.externalSystem = &externalSystem{st, map[string]*externalWork{}}
	st.limits = flow.Limits{Deliveries: endless}
	if !o.Plain {
		st.limits.Events, st.limits.Window = pickOne(w.rng, 0, 1, 3, 20), pickOne(w.rng, 0, 1, 3)
	}
	if !o.Plain && w.drawChance(100) {
		st.limits.Deliveries = 2 + w.rng.IntN(4)
	}
	st.deletes, st.shrinks = !o.Plain && !o.Planned && w.drawChance(300), !o.Plain && !o.Planned && w.drawChance(100)
	if o.Rewinds {
		st.bareForRewinds()
	}
	for i := range 1 + w.rng.IntN(pickOne(w.rng, 2, 5, 12)) {
		if o.Rewinds {
			st.addUser(i, st.drawSuitable())
			continue
		}
		if !o.Plain && w.drawChance(400) {
			st.addUser(i, drawDag(w.rng, st.cluster))
			continue
		}
		st.addUser(i, drawPlay(w.rng, !o.Plain, st.cluster))
	}
	if o.Clock || !o.Plain && !o.Rewinds && w.drawChance(300) {
		st.addTimetable()
	}
	return st
}

func (st *simRun) addUser(i int, p *flowScenario) {
	version := fmt.Sprint("version-", i)
	plan, err := p.compilePlan(st.limits)
	if err != nil {
		st.w.failRun("flow %s: %v", p.definition, err)
		return
	}
	st.check.notePlan(version, plan)
	if st.damage != nil {
		st.damage(plan)
	}
	st.store.versions[version] = persistence.Version{ID: version, FlowID: fmt.Sprint("flow-", i), Number: 1, Status: "published", Definition: p.definition}
	st.users = append(st.users, &simUser{simRun: st, name: fmt.Sprint("user-", i), play: p, version: version, sent: map[string]bool{}})
}

// limitsOf are those of the next member. Of what is there already, all goes on.
func (st *simRun) limitsOf() flow.Limits {
	l := st.limits
	if st.shrinks && st.members > 1 {
		l.Depth, l.Units = pickOne(st.w.rng, 0, 1, 1), pickOne(st.w.rng, 0, 1, 2)
		l.Steps = pickOne(st.w.rng, 0, 1, 5, 20)
		st.w.addTrace("its limits are %+v", l)
	}
	return l
}

// newReader is a member's; nil for one that it makes itself.
func (st *simRun) newReader() *persistence.Reader {
	if st.damage == nil {
		return nil
	}
	r := persistence.NewReader(st.store, st.limits)
	for version := range st.store.versions {
		plan, err := r.Plan(context.Background(), version)
		if err != nil {
			st.w.failRun("version %s: %v", version, err)
			return r
		}
		st.damage(plan)
	}
	return r
}

// runToEnd plays until everybody has gone home, and then looks around.
func (st *simRun) runToEnd() {
	defer func() {
		if reason := recover(); reason != nil {
			st.w.failRun("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	if st.cluster {
		st.w.startCoroutine(st.outside, "director", st.runCluster)
	} else {
		st.w.startCoroutine(st.outside, "operator", st.runMember)
	}
	for _, u := range st.users {
		live := u.runUser
		if st.options.Rewinds {
			live = u.liveThroughRewinds
		}
		st.w.startCoroutine(st.outside, u.name, live)
	}
	if st.options.Rewinds {
		st.w.startCoroutine(st.outside, "rewinds", st.goBack)
	}
	if st.timetable != nil {
		st.w.startCoroutine(st.outside, timetableName, st.timetable.runSchedule)
	}
	if st.deletes {
		st.addPublisher()
	}
	for i := range 1 + st.w.rng.IntN(3) {
		p := &queuePoller{simRun: st, name: fmt.Sprint("poller-", i)}
		st.w.startCoroutine(st.outside, p.name, p.runPoller)
	}
	if st.attaches {
		st.addHands()
	}
	for st.w.failure == nil && !st.runDone {
		if st.w.steps > maxSteps || st.w.now > st.w.faults.calmAt+afterCalm || !st.w.runNext() {
			st.w.failRun("stuck after %d steps at %s: %s", st.w.steps, st.w.now, st.describeUnfinished())
		}
	}
	st.verifyAll()
}

func (st *simRun) verifyAll() {
	if st.w.failure == nil {
		st.check.atEnd()
	}
	for _, u := range st.users {
		if st.w.failure == nil {
			u.verifyOutcome()
		}
	}
}

func (st *simRun) describeUnfinished() string {
	text := ""
	for _, u := range st.users {
		if u.ended {
			continue
		}
		text += fmt.Sprintf("\n%s, task %q, %d helpers", u.name, u.task, u.pending)
		if t := st.check.tasks[u.task]; t != nil {
			in := st.store.tasks[u.task]
			text += fmt.Sprintf(": %s, resting %v until %d, flow %s", t.state.Status, in.resting, in.due, u.play.definition)
			for _, wait := range flow.Waiting(t.state) {
				text += fmt.Sprintf("\n  %s: %s until %d", wait.Address, wait.Text, wait.Until)
			}
		}
	}
	if t := st.timetable; t != nil && !t.ended {
		text += fmt.Sprintf("\n%s, which ends at %d, has begun %d tasks", timetableName, t.spec.EndAt, len(t.slots))
	}
	if p := st.publisher; p != nil && !p.ended {
		text += fmt.Sprintf("\n%s, %d helpers", p.slug, p.pending)
	}
	for _, s := range st.w.parked {
		text += fmt.Sprintf("\n%s on %s waits %s", s.name, s.host.name, s.stack)
	}
	return text
}

// anyMember is whoever a client happens to ask, also one that is no longer in charge.
func (st *simRun) anyMember() engine.Engine {
	st.w.parkUntil(func() bool { return len(st.activeMembers) > 0 })
	if !st.cluster && st.w.drawChance(900) {
		return st.activeMembers[len(st.activeMembers)-1].outsideEngine()
	}
	return pickOne(st.w.rng, st.activeMembers...).outsideEngine()
}

// onTheWay is what becomes of a question on its way to another member.
func (st *simRun) onTheWay(q engine.Message) engine.Message {
	if orders, ok := q.(*engine.Orders); ok && st.options.Nameless {
		nameless := slices.Clone(*orders)
		for i := range nameless {
			nameless[i].Request = ""
		}
		return &nameless
	}
	if orders, ok := q.(*engine.Orders); ok && st.options.Timeless {
		return withoutTimes(*orders)
	}
	return q
}

func withoutTimes(orders engine.Orders) *engine.Orders {
	orders = slices.Clone(orders)
	for i, o := range orders {
		if r, ok := o.Command.(flow.Report); ok {
			r.Given = 0
			orders[i].Command = r
		}
	}
	return &orders
}

// withPatience is how long somebody waits for an answer.
func (st *simRun) withPatience() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	wait := 500*time.Millisecond + st.w.upTo(20*time.Second)
	if st.w.isCalm() {
		wait = 20 * time.Second
	}
	stop := st.w.callAfter(nil, wait, cancel)
	return ctx, func() { stop(); cancel() }
}

// checkServed complains of an error that nobody should hear because members come and go.
func (st *simRun) checkServed(what string, err error) {
	if st.planned && isUndecided(err) {
		st.w.failRun("%s is answered with %v, and members only came and went", what, err)
	}
}

// isQuiet reports whether the weather has been calm for long enough that everything is answered in
// time.
func (st *simRun) isQuiet() bool { return st.w.now > st.w.faults.calmAt+20*time.Second }

// checkPatience complains of an answer that did not come though nothing was in its way.
func (st *simRun) checkPatience(quiet bool, what string, err error) {
	if quiet && errors.Is(err, context.Canceled) {
		st.w.failRun("%s was not answered in calm weather", what)
	}
}
