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
	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/member/schedules"
	"github.com/troupe-engine/troupe/persistence"
)

// simRun is a run with all its participants.
type simRun struct {
	w               *simWorld
	store           *storeModel
	check           *commitChecker
	outside         *host // host of users, pollers and the operator; it never fails
	users           []*simUser
	counts          Result // counters for some events
	attachedWorkers []*attachedWorker
	workers         registrationTimes // registered workers
	attaches        bool              // members have sessions for attached workers
	publisher       *flowPublisher    // nil if no flow is deleted
	externalSystem  *externalSystem
	timetable       *scheduleUser // nil if there is no schedule
	ledger          *codeLedger   // nil if no flow is a function
	limits          flow.Limits
	visibility      time.Duration
	// inserts a defect between the connection and the model
	wrapStore     func(persistence.Store) persistence.Store
	options       Options
	damage        func(*flow.Plan)
	cluster       bool         // several members run beside each other
	planned       bool         // members only join and leave; there are no other faults
	activeMembers []*simMember // members that receive requests, newest last
	allMembers    []*simMember // all members that ever ran
	log           *slog.Logger
	members       int
	requests      int
	runDone       bool
	deletes       bool // flows are deleted during the run
	reconnects    bool // a rewound store is reached only over new connections
	steady        bool // whether no more rewinds follow
	shrinks       bool // later members have smaller limits, which affect how tasks end
}

// simMember is a member with its host.
type simMember struct {
	*actors.Member
	*clusterMember // nil if it is alone
	st             *simRun
	h              *host
	sessions       *attached.Sessions // nil if no workers attach
	grace          time.Duration      // grace period of a session
	fickle         *fickleRelay       // nil without this defect
	timer          *schedules.Runner  // nil if there are no schedules
	ends           bool               // whether the member is giving up its work
}

// outsideEngine returns the engine that outside callers use.
func (a *simMember) outsideEngine() engine.Engine {
	if a.clusterMember == nil {
		return remoteEngine{a.Member, nil}
	}
	return remoteEngine{a.router, a.h}
}

// Options select the kind of run.
type Options struct {
	Plain    bool                                      // only chains of steps, and no faults
	Store    func(persistence.Store) persistence.Store // inserts a defect in front of the store
	Unfenced bool                                      // the store accepts writes of fenced members
	// the store grants more permits than the limit
	Generous bool
	// the store lets tasks of deleted flows start
	Orphans bool
	Plan    func(*flow.Plan) // inserts a defect into compiled plans
	Cluster bool             // several members
	Planned bool             // the members only join and leave
	Rewinds bool             // the store goes back in time
	Code    bool             // flows are functions; the run must be in a bubble of testing/synctest
	Unseen  bool             // a defect: members cannot notice a rewind

	// Further defects, of clusters:
	Nameless  bool // requests between members lose their request ids
	Oblivious bool // members believe that they are alone
	Gullible  bool // members believe gossip about which members are alive
	Timeless  bool // messages about a lost job between members lack the delivery number

	// Of external work:
	Unaware bool // a member that starts it is not informed that it may exist already

	// Of schedules:
	Clock   bool // there is always a schedule
	Keyless bool // the task of a slot is not recognized when it starts again

	// Of attached workers:
	Fickle bool // their jobs move to others while their sessions continue
	Greedy bool // whether workers get one job more than their credits

	// Of functions:
	Shortened bool // carriers get the history of a function without its newest step
	Ageless   bool // results of older deliveries are accepted
	Hasty     bool // results are acknowledged before they are stored
	Shuffled  bool // carriers get the steps of a function in another order

	Stacks bool // report where blocked coroutines wait
}

// Result is the result of a run.
type Result struct {
	Err      error  // first broken promise
	Hash     uint64 // hash of all events
	Steps    int    // number of scheduled steps
	Tasks    int
	Members  int            // members started
	Trips    int            // crashes of step actors in the middle of their work
	Given    int            // jobs sent to attached workers
	Passed   int            // jobs passed between members
	Resumed  int            // resumed sessions
	Moved    int            // sessions moved with jobs to another member
	Over     int            // ended sessions whose jobs moved to others
	Abroad   int            // external work started
	Found    int            // external work found by a member that started it again
	Followed int            // looks at external work by members that did not start it
	Slots    int            // slots that had a task
	Rewinds  int            // rewinds of the store
	Code     CodeCounts     // counts of functions
	Lies     map[string]int // false views of gossip, by kind
	Trace    []string       // last lines of the trace
}

// Bounds of a run. After the end of the faults nothing may take longer.
const (
	maxSteps  = 300_000
	afterCalm = 10 * time.Minute
)

// endless is a limit that is never reached.
const endless = 1 << 30

// Run plays the run of a seed.
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

// idGenerator is the source of ids and tokens.
type idGenerator struct{ w *simWorld }

func (g idGenerator) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(g.w.rng.Uint32())
	}
	return len(b), nil
}

func newStage(w *simWorld, o Options) *simRun {
	st := &simRun{w: w, store: newModel(w), check: newChecker(w), options: o, wrapStore: o.Store,
		damage: o.Plan, visibility: time.Duration(300+w.rng.IntN(4000)) * time.Millisecond}
	st.store.check, st.check.store, st.store.unfenced, st.store.orphans,
		st.store.generous = st.check, st.store, o.Unfenced, o.Orphans, o.Generous
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
	if o.Code {
		st.prepareCode()
	}
	for i := range 1 + w.rng.IntN(pickOne(w.rng, 2, 5, 12)) {
		if o.Code {
			st.addUser(i, drawFunction(w.rng, fmt.Sprint("function-", i), !o.Plain))
			continue
		}
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
	if o.Clock || !o.Plain && !o.Rewinds && !o.Code && w.drawChance(300) {
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
	st.store.versions[version] = persistence.Version{ID: version, FlowID: fmt.Sprint("flow-", i),
		Number: 1, Status: "published", Definition: p.definition}
	st.users = append(st.users, &simUser{simRun: st, name: fmt.Sprint("user-", i), play: p, version: version, sent: map[string]bool{}})
}

// prepareCode prepares a run of functions. Their outcomes depend on no limit.
func (st *simRun) prepareCode() {
	st.w.functions = true
	st.ledger = newCodeLedger(st.w, st.check, &st.counts.Code)
	st.check.ledger = st.ledger
	st.limits.Deliveries, st.deletes, st.shrinks = endless, false, false
}

// limitsOf returns the limits of the next member. Existing tasks continue under any limits.
func (st *simRun) limitsOf() flow.Limits {
	l := st.limits
	if st.shrinks && st.members > 1 {
		l.Depth, l.Units = pickOne(st.w.rng, 0, 1, 1), pickOne(st.w.rng, 0, 1, 2)
		l.Steps = pickOne(st.w.rng, 0, 1, 5, 20)
		st.w.addTrace("its limits are %+v", l)
	}
	return l
}

// newReader returns a member's plan reader, or nil if the member makes its own.
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

// runToEnd runs until all users have finished, and then checks the final state.
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

// anyMember returns a random member for a request of a client. The member may have lost its
// ownership.
func (st *simRun) anyMember() engine.Engine {
	st.w.parkUntil(func() bool { return len(st.activeMembers) > 0 })
	if !st.cluster && st.w.drawChance(900) {
		return st.activeMembers[len(st.activeMembers)-1].outsideEngine()
	}
	return pickOne(st.w.rng, st.activeMembers...).outsideEngine()
}

// onTheWay may modify a request on its way to another member.
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

// withPatience returns a context that limits the wait for an answer.
func (st *simRun) withPatience() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	wait := 500*time.Millisecond + st.w.upTo(20*time.Second)
	if st.w.isCalm() {
		wait = 20 * time.Second
	}
	stop := st.w.callAfter(nil, wait, cancel)
	return ctx, func() { stop(); cancel() }
}

// checkServed fails the run for an error that clients must not see when members only join and
// leave.
func (st *simRun) checkServed(what string, err error) {
	if st.planned && isUndecided(err) {
		st.w.failRun("%s is answered with %v, and members only came and went", what, err)
	}
}

// isQuiet reports whether the faults ended long enough ago that every answer must come in time.
func (st *simRun) isQuiet() bool { return st.w.now > st.w.faults.calmAt+20*time.Second }

// checkPatience fails the run for an answer that did not come although there were no faults.
func (st *simRun) checkPatience(quiet bool, what string, err error) {
	if quiet && errors.Is(err, context.Canceled) {
		st.w.failRun("%s was not answered in calm weather", what)
	}
}
