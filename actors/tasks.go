package actors

import (
	"container/list"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Messages to the tasks actor.
type (
	// command is for a task; reply is called once, after the commit.
	command struct {
		task    string
		cmd     flow.Command
		request string
		reply   func(answer) // nil = nobody waits
		events  bool         // the answer is to have those it led to
		refused int          // how often the store refused what it led to

		rider    *poller // comes with it, for jobs that it begins; nil = nobody does
		unlisted bool    // a claim on a job that need not be in the queue
	}
	// create begins a task.
	create struct {
		task    string
		plan    *flow.Plan
		start   flow.Start
		create  *persistence.Create
		newest  bool                 // a task of another version of the flow may be the same
		repeats *persistence.TaskRow // the task that the same start has created before, and that would not take it any longer; nil = none
		reply   func(answer)
	}
	// wakeUp brings tasks into memory that have something to do.
	wakeUp struct {
		tasks []string
		up    func() // is called for each that is there, or will not be; nil = nobody cares
	}
	// await is answered when a task has ended.
	await struct {
		task string
		done func(flow.TaskStatus, error)
	}
	// Of task actors about themselves.
	ended struct {
		task   *task
		status flow.TaskStatus
		gone   bool // and has nothing more to do
	}
	unknown  struct{ task *task }
	restable struct {
		task *task
		ok   bool
	}
	rested struct {
		task  *task
		moved bool // another member may have it
	}
	departed struct{ task *task } // one that rested for another member has stopped
	stopWait struct {
		task string
		key  *await
	}
	sweep   struct{}
	restAll struct{ done func() }
	// revive says that a pause after a crash is over.
	revive struct {
		task  string
		pause *pause
	}
	// ask is a message for a task's actor.
	ask struct {
		task    string
		message any
	}
)

// answer of a command: after the commit it follows from.
type answer struct {
	err     error
	job     *flow.Job    // of a Claim
	held    int64        // of a Claim that was refused: until when somebody else has the job; 0 = nobody has
	changed int          // events that it led to at once
	events  []flow.Event // these, if the command asks for them
	first   int          // index of the first unit of an Append
	given   int          // of a Bring: as which the attempt is carried now
}

func (c *command) answer(a answer) {
	if reply := c.reply; reply != nil {
		c.reply = nil
		reply(a)
	}
}

// landed says whether a command is what jobs of this member have reported.
func (c *command) landed() bool {
	switch c.cmd.(type) {
	case flow.Report, flow.Reports:
		return c.reply == nil
	}
	return false
}

// entry is a task in memory. While it is being retired, what arrives is kept here.
type entry struct {
	id       string
	pid      *actor.PID
	task     *task
	used     int64 // when something last arrived
	place    *list.Element
	retiring bool
	ended    bool // its end has been told to those who were waiting
	arrived  []any
}

// tasks is the parent of all task actors and the only one who knows which are in memory.
type tasks struct {
	m              *Member
	entries        map[string]*entry
	byPID          map[string]*entry // by the actor's id, for failures
	taskSupervisor *taskSupervisor
	byUse          *list.List // of *entry, longest unused first
	waiters        map[string][]*await
	crashes        map[string]int    // since the task last ended or rested well
	lacks          map[string]string // what those cannot go on without that crashed for it, likewise
	pauses         map[string]*pause
	resting        bool   // all tasks are to: the member goes
	leaving        func() // called once they do
	retired        int    // since memory was last given back …
	counted        int    // … as of the last sweep
	asked          int    // how many have not answered yet whether they may rest
	closed         bool

	handovers []*handover
	movers    []*entry                // of shards that are handed over, which have yet to be asked to rest
	inMemory  [persistence.Shards]int // tasks by shard, and those that will be after a pause; not kept by a member that owns all
}

func newTasks(m *Member) *tasks {
	return &tasks{m: m, taskSupervisor: &taskSupervisor{m}, entries: map[string]*entry{}, byPID: map[string]*entry{}, byUse: list.New(),
		waiters: map[string][]*await{}, crashes: map[string]int{}, lacks: map[string]string{}, pauses: map[string]*pause{}}
}

func (t *tasks) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *command:
		t.deliver(c, m.task, m)
	case *create:
		t.create(c, m)
	case *await:
		t.await(c, m)
	case stopWait:
		t.stopWait(m)
	case wakeUp:
		t.wake(c, m)
	case revive:
		if t.pauses[m.task] == m.pause { // else that one was ended before, and another one may have begun
			t.revive(c, m.task)
		}
	case *ask:
		t.deliver(c, m.task, m.message)
	case ended:
		t.ended(c, m)
	case unknown:
		t.unknown(c, m.task)
	case restable:
		t.restable(c, m)
	case departed:
		t.departed(c, m.task)
	case rested:
		t.rested(c, m)
	case gain:
		t.gain(m)
	case lose:
		t.lose(c, m)
	case heldUp:
		t.heldUp(m)
	case unheard:
		t.unheard(m)
	case orphaned:
		t.orphaned(c)
	case sweep:
		t.sweep(c)
	case restAll:
		t.restAll(c, m.done)
	case crashed:
		t.crashed(c, m)
	case *actor.Stopping:
		t.stop(c)
	}
}

// stop ends all task actors with their parent.
func (t *tasks) stop(c actor.Context) {
	t.closed = true
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		c.Stop(el.Value.(*entry).pid)
	}
}

// deliver hands something to a task, bringing it into memory when it is not.
func (t *tasks) deliver(c actor.Context, id string, message any) {
	e := t.entries[id]
	if e == nil && t.resting {
		t.refuse([]any{message})
		return
	}
	p := t.pauses[id]
	if !t.m.owned.owns(id) && (e == nil && p == nil || asks(message)) {
		t.elsewhere(message)
		return
	}
	if p != nil {
		p.hold(message)
		return
	}
	if e == nil {
		e = t.open(c, id, &task{performer: performer{m: t.m, task: id}, id: id, loading: true})
	}
	t.hand(c, e, message)
}

func (t *tasks) hand(c actor.Context, e *entry, message any) {
	e.used = t.m.now()
	t.byUse.MoveToBack(e.place)
	if e.retiring {
		e.arrived = append(e.arrived, message)
		return
	}
	c.Send(e.pid, message)
}

func (t *tasks) open(_ actor.Context, id string, child *task) *entry {
	if t.closed {
		return &entry{id: id, retiring: true, place: t.byUse.PushBack(nil)}
	}
	e := &entry{id: id, task: child, used: t.m.now()}
	child.crashes, child.lacks = t.crashes[id], t.lacks[id]
	e.pid = t.m.system.Root.Spawn(t.m.props(func() actor.Actor { return child }).Clone(actor.WithGuardian(t.taskSupervisor)))
	e.place = t.byUse.PushBack(e)
	t.entries[id], t.byPID[e.pid.Id] = e, e
	t.count(id, 1)
	return e
}

func (t *tasks) create(c actor.Context, m *create) {
	if !t.m.owned.owns(m.task) {
		m.reply(answer{err: errMoved(m.task)})
		return
	}
	if e := t.entries[m.task]; e != nil {
		// Somebody else is starting it, or has: answered when that is stored.
		t.hand(c, e, &command{task: m.task, cmd: m.start, reply: func(a answer) { m.reply(answer{err: second(a.err)}) }})
		return
	}
	switch {
	case t.resting:
		m.reply(answer{err: errLeaving})
		return
	case t.pauses[m.task] != nil:
		m.reply(answer{err: errCrashed})
		return
	}
	child := &task{performer: performer{m: t.m, task: m.task}, id: m.task, create: m.create, state: flow.NewState(m.task, m.plan)}
	e := t.open(c, m.task, child)
	t.hand(c, e, &command{task: m.task, cmd: m.start, reply: m.reply})
}

// second is the answer to a start that found another one under way, from what that one came to.
func second(err error) error {
	switch flow.ErrorKindOf(err) {
	case flow.Busy:
		return err
	case flow.NotFound:
		return errCrashed // it came to nothing
	}
	return persistence.ErrExists
}

func (t *tasks) wake(c actor.Context, m wakeUp) {
	for _, id := range m.tasks {
		switch {
		case t.entries[id] == nil && t.pauses[id] == nil && !t.resting && t.m.owned.owns(id):
			t.open(c, id, &task{performer: performer{m: t.m, task: id}, id: id, loading: true, up: m.up})
		case m.up != nil:
			m.up()
		}
	}
}

// close forgets a task actor and stops it.
func (t *tasks) close(c actor.Context, e *entry) {
	t.forget(e)
	c.Stop(e.pid)
}

func (t *tasks) forget(e *entry) {
	delete(t.entries, e.id)
	delete(t.byPID, e.pid.Id)
	t.byUse.Remove(e.place)
	t.heard(e)
	t.count(e.id, -1)
	if t.leaving != nil && len(t.entries) == 0 {
		t.leaving()
		t.leaving = nil
	}
}

func (t *tasks) current(k *task) *entry {
	if e := t.entries[k.id]; e != nil && e.task == k {
		return e
	}
	return nil
}

// reopen replays what arrived while a task was retired.
func (t *tasks) reopen(c actor.Context, e *entry) {
	for _, message := range e.arrived {
		t.deliver(c, e.id, message)
	}
}

func (t *tasks) ended(c actor.Context, m ended) {
	t.tellEnd(c, m.task.id, m.status)
	delete(t.crashes, m.task.id)
	delete(t.lacks, m.task.id)
	e := t.current(m.task)
	if e == nil {
		return
	}
	e.ended = true
	if !m.gone {
		t.rest(e, false)
		return
	}
	t.retired++
	t.m.rested.Add(1)
	t.forget(e)
	c.Poison(e.pid) // it hands back what is before that in its mailbox
	t.reopen(c, e)
	t.retireMore(c)
}

// tellEnd tells those who wait for a task how it has ended. Where another member may have taken over, which may have taken that end back before they
// came, they look themselves.
func (t *tasks) tellEnd(c actor.Context, id string, status flow.TaskStatus) {
	if !t.m.lease.held() {
		for _, w := range t.waiters[id] {
			t.look(c, w)
		}
		return
	}
	for _, w := range t.waiters[id] {
		w.done(status, nil)
	}
	delete(t.waiters, id)
}

// unknown forgets a task that there was not when its actor looked. Those who wait for its end look themselves: they may have come later,
// and there is one by then if another member has taken over, or it was begun apart.
func (t *tasks) unknown(c actor.Context, k *task) {
	for _, w := range t.waiters[k.id] {
		t.look(c, w)
	}
	e := t.current(k)
	if e == nil {
		return
	}
	t.forget(e)
	c.Poison(e.pid) // it still answers what it was handed before
	t.reopen(c, e)
}

func errNoTask(id string) error {
	return flow.Errorf(flow.NotFound, "there is no task %s", id)
}

func (t *tasks) await(c actor.Context, w *await) {
	if !t.m.owned.owns(w.task) {
		w.done("", errMoved(w.task))
		return
	}
	t.waiters[w.task] = append(t.waiters[w.task], w)
	if e := t.entries[w.task]; e == nil || e.ended {
		t.look(c, w)
	}
}

// look answers one who waits if the task has ended, or there is none.
func (t *tasks) look(c actor.Context, w *await) {
	self := c.Self()
	t.m.background(func() {
		row, err := t.m.store.Task(t.m.ctx, w.task)
		switch {
		case err != nil:
			t.m.tell(self, stopWait{w.task, w})
			w.done("", notFound(err, w.task))
		case flow.TaskStatus(row.Status).Ended():
			t.m.tell(self, stopWait{w.task, w})
			w.done(flow.TaskStatus(row.Status), nil)
		}
	})
}

func (t *tasks) stopWait(m stopWait) {
	left := t.waiters[m.task][:0]
	for _, w := range t.waiters[m.task] {
		if w != m.key {
			left = append(left, w)
		}
	}
	if t.waiters[m.task] = left; len(left) == 0 {
		delete(t.waiters, m.task)
	}
}
