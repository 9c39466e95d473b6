package actors

import (
	"container/list"
	"maps"
	"runtime/debug"
	"slices"
	"time"

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
		refused int          // how often the store refused what it led to
	}
	// create begins a task.
	create struct {
		task   string
		plan   *flow.Plan
		start  flow.Start
		create *persistence.Create
		newest bool // a task of another version of the flow may be the same
		reply  func(answer)
	}
	// wakeUp brings tasks into memory that have something to do.
	wakeUp struct{ tasks []string }
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
	revive  struct{ task string } // the pause after a crash is over
	// ask is a message for a task's actor.
	ask struct {
		task    string
		message any
	}
)

// answer of a command: after the commit it follows from.
type answer struct {
	err    error
	job    *flow.Job    // of a Claim
	held   int64        // of a Claim that was refused: until when somebody else has the job; 0 = nobody has
	events []flow.Event // that it led to at once
	first  int          // index of the first unit of an Append
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
	m        *Member
	entries  map[string]*entry
	byPID    map[string]*entry // by the actor's id, for failures
	watchman *watchman
	byUse    *list.List // of *entry, longest unused first
	waiters  map[string][]*await
	crashes  map[string]int // since the task last ended or rested well
	pauses   map[string]*pause
	resting  bool   // all tasks are to: the member goes
	leaving  func() // called once they do
	retired  int    // since memory was last given back …
	counted  int    // … as of the last sweep
	asked    int    // how many have not answered yet whether they may rest
	closed   bool

	handovers []*handover
	inMemory  [persistence.Shards]int // tasks by shard, and those that will be after a pause; not kept by a member that owns all
}

func newTasks(m *Member) *tasks {
	return &tasks{m: m, watchman: &watchman{m}, entries: map[string]*entry{}, byPID: map[string]*entry{}, byUse: list.New(),
		waiters: map[string][]*await{}, crashes: map[string]int{}, pauses: map[string]*pause{}}
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
		t.revive(c, m.task)
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
		t.closed = true
		for el := t.byUse.Front(); el != nil; el = el.Next() {
			c.Stop(el.Value.(*entry).pid)
		}
	}
}

// deliver hands something to a task, bringing it into memory when it is not.
func (t *tasks) deliver(c actor.Context, id string, message any) {
	e := t.entries[id]
	if e == nil && t.resting {
		refuse([]any{message})
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
		e = t.open(c, id, &task{hands: hands{m: t.m, task: id}, id: id, loading: true})
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

func (t *tasks) open(c actor.Context, id string, child *task) *entry {
	if t.closed {
		return &entry{id: id, retiring: true, place: t.byUse.PushBack(nil)}
	}
	e := &entry{id: id, task: child, used: t.m.now()}
	child.crashes = t.crashes[id]
	e.pid = t.m.system.Root.Spawn(t.m.props(func() actor.Actor { return child }).Clone(actor.WithGuardian(t.watchman)))
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
	child := &task{hands: hands{m: t.m, task: m.task}, id: m.task, create: m.create, state: flow.NewState(m.task, m.plan)}
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
		if t.entries[id] == nil && t.pauses[id] == nil && !t.resting && t.m.owned.owns(id) {
			t.open(c, id, &task{hands: hands{m: t.m, task: id}, id: id, loading: true})
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
	for _, w := range t.waiters[m.task.id] {
		w.done(m.status, nil)
	}
	delete(t.waiters, m.task.id)
	delete(t.crashes, m.task.id)
	e := t.current(m.task)
	if e == nil {
		return
	}
	e.ended = true
	if !m.gone {
		t.rest(c, e, false)
		return
	}
	t.retired++
	t.m.rested.Add(1)
	t.forget(e)
	c.Poison(e.pid) // it hands back what is before that in its mailbox
	t.reopen(c, e)
	t.retireMore(c)
}

// unknown answers everybody who asked for a task that does not exist.
func (t *tasks) unknown(c actor.Context, k *task) {
	for _, w := range t.waiters[k.id] {
		w.done("", errNoTask(k.id))
	}
	delete(t.waiters, k.id)
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

// sweep retires, again and again, what has been idle for long enough.
func (t *tasks) sweep(c actor.Context) {
	t.retire(c)
	t.giveBackMemory()
	self := c.Self()
	t.m.cfg.Host.Clock.AfterFunc(max(t.m.cfg.IdleAfter/6, 10*time.Millisecond), func() { t.m.tell(self, sweep{}) })
}

// maxAsked is how many tasks are asked at once whether they may rest: what fills a batch or two. All that
// are idle would stand before the commits of those who work, and be so many that new work is refused.
const maxAsked = 2 * maxBatch

// manyAwake is from how many tasks in memory on they are asked to rest sooner.
const manyAwake = 10_000

// patience is how long a task may be idle before it is asked to rest.
func (t *tasks) patience() time.Duration {
	if len(t.entries) > manyAwake {
		return t.m.cfg.IdleAfter / 3
	}
	return t.m.cfg.IdleAfter
}

// retire asks those to rest that have been idle for long enough.
func (t *tasks) retire(c actor.Context) {
	before := t.m.now() - t.patience().Milliseconds()
	for el := t.byUse.Front(); el != nil && t.asked < maxAsked; {
		e := el.Value.(*entry)
		if e.used > before {
			break
		}
		next := el.Next()
		t.rest(c, e, false)
		el = next
	}
}

// retireMore goes on when half of those who were asked have answered.
func (t *tasks) retireMore(c actor.Context) {
	if t.asked == maxAsked/2 && !t.resting {
		t.retire(c)
	}
}

// heard notes that a task has answered, or never will.
func (t *tasks) heard(e *entry) {
	if e.retiring {
		e.retiring = false
		t.asked--
	}
}

// manyRetired is from how many retired tasks on their memory is given back to the system, as soon as
// no more of them come. The runtime would do so too, but only minutes later.
const manyRetired = 5_000

func (t *tasks) giveBackMemory() {
	calm := t.retired == t.counted
	t.counted = t.retired
	if t.retired < manyRetired || !calm {
		return
	}
	t.retired, t.counted = 0, 0
	t.entries, t.byPID = shrunk(t.entries), shrunk(t.byPID)
	t.m.background(debug.FreeOSMemory)
}

// shrunk is a map's content in a map of its size: a map keeps the size it once had.
func shrunk(m map[string]*entry) map[string]*entry {
	small := make(map[string]*entry, len(m))
	maps.Copy(small, m)
	return small
}

// restable is a task's answer to restRequest. One that is busy gets what arrived meanwhile.
func (t *tasks) restable(c actor.Context, m restable) {
	e := t.current(m.task)
	if e == nil || m.ok {
		return
	}
	t.heard(e)
	e.used = t.m.now()
	t.byUse.MoveToBack(e.place)
	for _, message := range e.arrived {
		c.Send(e.pid, message)
	}
	e.arrived = nil
	if t.resting || !t.m.owned.owns(e.id) {
		t.rest(c, e, true)
	}
	t.retireMore(c)
}

// rest asks a task to let itself be retired, unless it has been asked before. One that is another member's by now is
// handed over.
func (t *tasks) rest(c actor.Context, e *entry, force bool) {
	if !e.retiring {
		e.retiring = true
		t.asked++
		c.Send(e.pid, restRequest{force: force, move: force && !t.resting})
	}
}

func (t *tasks) rested(c actor.Context, m rested) {
	e := t.current(m.task)
	if e == nil {
		return
	}
	t.retired++
	t.m.rested.Add(1)
	delete(t.crashes, e.id)
	if m.moved {
		c.Poison(e.pid)
		return
	}
	t.close(c, e)
	if t.resting {
		refuse(e.arrived)
		return
	}
	t.reopen(c, e)
	t.retireMore(c)
}

// refuse answers those whose task is no longer here, because the member goes.
func refuse(messages []any) {
	for _, message := range messages {
		if cmd, ok := message.(*command); ok {
			cmd.answer(answer{err: errLeaving})
		}
	}
}

var errLeaving = flow.Errorf(flow.Busy, "the member is shutting down: ask again when it is back")

// restAll puts every task to rest, because the member goes.
func (t *tasks) restAll(c actor.Context, done func()) {
	t.resting = true
	for _, id := range slices.Sorted(maps.Keys(t.pauses)) {
		t.pauses[id].refuse()
	}
	clear(t.pauses)
	if len(t.entries) == 0 {
		done()
		return
	}
	t.leaving = done
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		t.rest(c, el.Value.(*entry), true)
	}
}

func (t *tasks) await(c actor.Context, w *await) {
	if !t.m.owned.owns(w.task) {
		w.done("", errMoved(w.task))
		return
	}
	t.waiters[w.task] = append(t.waiters[w.task], w)
	if e := t.entries[w.task]; e != nil && !e.ended {
		return
	}
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
