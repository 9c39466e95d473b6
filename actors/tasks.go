package actors

import (
	"container/list"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Messages to the tasks actor.
type (
	// taskCommand is for a task; reply is called once, after the commit.
	taskCommand struct {
		task    string
		command flow.Command
		request string
		reply   func(commandAnswer) // nil = nobody waits
		events  bool                // the answer is to have those it led to
		refused int                 // how often the store refused what it led to

		orderPoll *poller // comes with it, for jobs that it begins; nil = nobody does
		unlisted  bool    // a claim on a job that need not be in the queue
	}
	// createTask begins a task.
	createTask struct {
		task    string
		plan    *flow.Plan
		start   flow.Start
		create  *persistence.Create
		newest  bool                 // a task of another version of the flow may be the same
		repeats *persistence.TaskRow // the task that the same start has created before, and that would not take it any longer; nil = none
		reply   func(commandAnswer)
	}
	// wakeTasks brings tasks into memory that have something to do.
	wakeTasks struct {
		tasks    []string
		onLoaded func() // is called for each that is there, or will not be; nil = nobody cares
	}
	// awaitTask is answered when a task has ended.
	awaitTask struct {
		task string
		done func(flow.TaskStatus, error)
	}
	// Of task actors about themselves.
	taskEnded struct {
		task   *task
		status flow.TaskStatus
		gone   bool // and has nothing more to do
	}
	taskUnknown struct{ task *task }
	restAnswer  struct {
		task *task
		ok   bool
	}
	taskRested struct {
		task  *task
		moved bool // another member may have it
	}
	taskDeparted struct{ task *task } // one that rested for another member has stopped
	stopWait     struct {
		task string
		key  *awaitTask
	}
	sweepTasks struct{}
	restAll    struct{ done func() }
	// reviveTask says that a pause after a crash is over.
	reviveTask struct {
		task  string
		pause *crashPause
	}
	// taskMessage is a message for a task's actor.
	taskMessage struct {
		task    string
		message any
	}
)

// commandAnswer of a command: after the commit it follows from.
type commandAnswer struct {
	err     error
	job     *flow.Job    // of a Claim
	held    int64        // of a Claim that was refused: until when somebody else has the job; 0 = nobody has
	changed int          // events that it led to at once
	events  []flow.Event // these, if the command asks for them
	first   int          // index of the first unit of an Append
	given   int          // of a Bring: as which the attempt is carried now
}

func (c *taskCommand) sendAnswer(a commandAnswer) {
	if reply := c.reply; reply != nil {
		c.reply = nil
		reply(a)
	}
}

// isJobReport reports whether a command is what jobs of this member have reported.
func (c *taskCommand) isJobReport() bool {
	switch c.command.(type) {
	case flow.Report, flow.Reports:
		return c.reply == nil
	}
	return false
}

// taskEntry is a task in memory. While it is being retired, what arrives is kept here.
type taskEntry struct {
	id       string
	pid      *actor.PID
	task     *task
	used     int64 // when something last arrived
	element  *list.Element
	retiring bool
	ended    bool // its end has been told to those who were waiting
	arrived  []any
}

// tasks is the parent of all task actors and the only one who knows which are in memory.
type tasks struct {
	m              *Member
	entries        map[string]*taskEntry
	byPID          map[string]*taskEntry // by the actor's id, for failures
	taskSupervisor *taskSupervisor
	byUse          *list.List // of *entry, longest unused first
	waiters        map[string][]*awaitTask
	crashes        map[string]int    // since the task last ended or rested well
	missingValues  map[string]string // what those cannot go on without that crashed for it, likewise
	pauses         map[string]*crashPause
	resting        bool   // all tasks are to: the member goes
	onAllRested    func() // called once they do
	retired        int    // since memory was last given back …
	counted        int    // … as of the last sweep
	restAsked      int    // how many have not answered yet whether they may rest
	closed         bool

	handovers   []*shardHandover
	tasksToMove []*taskEntry            // of shards that are handed over, which have yet to be asked to rest
	inMemory    [persistence.Shards]int // tasks by shard, and those that will be after a pause; not kept by a member that owns all
}

func newTasks(m *Member) *tasks {
	return &tasks{m: m, taskSupervisor: &taskSupervisor{m}, entries: map[string]*taskEntry{}, byPID: map[string]*taskEntry{}, byUse: list.New(),
		waiters: map[string][]*awaitTask{}, crashes: map[string]int{}, missingValues: map[string]string{}, pauses: map[string]*crashPause{}}
}

func (t *tasks) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *taskCommand:
		t.deliverMessage(c, m.task, m)
	case *createTask:
		t.startTask(c, m)
	case *awaitTask:
		t.addWaiter(c, m)
	case stopWait:
		t.stopWait(m)
	case wakeTasks:
		t.wakeTasks(c, m)
	case reviveTask:
		if t.pauses[m.task] == m.pause { // else that one was ended before, and another one may have begun
			t.reviveTask(c, m.task)
		}
	case *taskMessage:
		t.deliverMessage(c, m.task, m.message)
	case taskEnded:
		t.finishTask(c, m)
	case taskUnknown:
		t.forgetUnknown(c, m.task)
	case restAnswer:
		t.handleRestAnswer(c, m)
	case taskDeparted:
		t.finishMove(c, m.task)
	case taskRested:
		t.finishRest(c, m)
	case shardsGained:
		t.gainShards(m)
	case loseShards:
		t.loseShards(c, m)
	case handoverDelayed:
		t.logDelayedHandover(m)
	case unknownJob:
		t.returnUnknownJob(m)
	case memberGone:
		t.recoverOrphans(c)
	case sweepTasks:
		t.sweepIdle(c)
	case restAll:
		t.restAll(c, m.done)
	case taskCrashed:
		t.restartCrashed(c, m)
	case *actor.Stopping:
		t.stopAll(c)
	}
}

// stopAll ends all task actors with their parent.
func (t *tasks) stopAll(c actor.Context) {
	t.closed = true
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		c.Stop(el.Value.(*taskEntry).pid)
	}
}

// deliverMessage hands something to a task, bringing it into memory when it is not.
func (t *tasks) deliverMessage(c actor.Context, id string, message any) {
	e := t.entries[id]
	if e == nil && t.resting {
		t.refuseMessages([]any{message})
		return
	}
	p := t.pauses[id]
	if !t.m.owned.ownsTask(id) && (e == nil && p == nil || awaitsReply(message)) {
		t.redirectMessage(message)
		return
	}
	if p != nil {
		p.holdMessage(message)
		return
	}
	if e == nil {
		e = t.openTask(c, id, &task{effectPerformer: effectPerformer{m: t.m, task: id}, id: id, loading: true})
	}
	t.sendToEntry(c, e, message)
}

func (t *tasks) sendToEntry(c actor.Context, e *taskEntry, message any) {
	e.used = t.m.nowMillis()
	t.byUse.MoveToBack(e.element)
	if e.retiring {
		e.arrived = append(e.arrived, message)
		return
	}
	c.Send(e.pid, message)
}

func (t *tasks) openTask(_ actor.Context, id string, child *task) *taskEntry {
	if t.closed {
		return &taskEntry{id: id, retiring: true, element: t.byUse.PushBack(nil)}
	}
	e := &taskEntry{id: id, task: child, used: t.m.nowMillis()}
	child.crashes, child.missingValue = t.crashes[id], t.missingValues[id]
	e.pid = t.m.system.Root.Spawn(t.m.actorProps(func() actor.Actor { return child }).Clone(actor.WithGuardian(t.taskSupervisor)))
	e.element = t.byUse.PushBack(e)
	t.entries[id], t.byPID[e.pid.Id] = e, e
	t.countInMemory(id, 1)
	return e
}

func (t *tasks) startTask(c actor.Context, m *createTask) {
	if !t.m.owned.ownsTask(m.task) {
		m.reply(commandAnswer{err: errMoved(m.task)})
		return
	}
	if e := t.entries[m.task]; e != nil {
		// Somebody else is starting it, or has: answered when that is stored.
		t.sendToEntry(c, e, &taskCommand{task: m.task, command: m.start, reply: func(a commandAnswer) { m.reply(commandAnswer{err: secondStartError(a.err)}) }})
		return
	}
	switch {
	case t.resting:
		m.reply(commandAnswer{err: errLeaving})
		return
	case t.pauses[m.task] != nil:
		m.reply(commandAnswer{err: errCrashed})
		return
	}
	child := &task{effectPerformer: effectPerformer{m: t.m, task: m.task}, id: m.task, create: m.create, state: flow.NewState(m.task, m.plan)}
	e := t.openTask(c, m.task, child)
	t.sendToEntry(c, e, &taskCommand{task: m.task, command: m.start, reply: m.reply})
}

// secondStartError is the answer to a start that found another one under way, from what that one
// came to.
func secondStartError(err error) error {
	switch flow.ErrorKindOf(err) {
	case flow.Busy:
		return err
	case flow.NotFound:
		return errCrashed // it came to nothing
	}
	return persistence.ErrExists
}

func (t *tasks) wakeTasks(c actor.Context, m wakeTasks) {
	for _, id := range m.tasks {
		switch {
		case t.entries[id] == nil && t.pauses[id] == nil && !t.resting && t.m.owned.ownsTask(id):
			t.openTask(c, id, &task{effectPerformer: effectPerformer{m: t.m, task: id}, id: id, loading: true, onLoaded: m.onLoaded})
		case m.onLoaded != nil:
			m.onLoaded()
		}
	}
}

// closeTask forgets a task actor and stops it.
func (t *tasks) closeTask(c actor.Context, e *taskEntry) {
	t.forgetTask(e)
	c.Stop(e.pid)
}

func (t *tasks) forgetTask(e *taskEntry) {
	delete(t.entries, e.id)
	delete(t.byPID, e.pid.Id)
	t.byUse.Remove(e.element)
	t.noteRestAnswer(e)
	t.countInMemory(e.id, -1)
	if t.onAllRested != nil && len(t.entries) == 0 {
		t.onAllRested()
		t.onAllRested = nil
	}
}

func (t *tasks) currentEntry(k *task) *taskEntry {
	if e := t.entries[k.id]; e != nil && e.task == k {
		return e
	}
	return nil
}

// redeliverArrived replays what arrived while a task was retired.
func (t *tasks) redeliverArrived(c actor.Context, e *taskEntry) {
	for _, message := range e.arrived {
		t.deliverMessage(c, e.id, message)
	}
}

func (t *tasks) finishTask(c actor.Context, m taskEnded) {
	t.notifyWaiters(c, m.task.id, m.status)
	delete(t.crashes, m.task.id)
	delete(t.missingValues, m.task.id)
	e := t.currentEntry(m.task)
	if e == nil {
		return
	}
	e.ended = true
	if !m.gone {
		t.askToRest(e, false)
		return
	}
	t.retired++
	t.m.rested.Add(1)
	t.forgetTask(e)
	c.Poison(e.pid) // it hands back what is before that in its mailbox
	t.redeliverArrived(c, e)
	t.retireMore(c)
}

// notifyWaiters tells those who wait for a task how it has ended. Where another member may have
// taken over, which may have taken that end back before they came, they look themselves.
func (t *tasks) notifyWaiters(c actor.Context, id string, status flow.TaskStatus) {
	if !t.m.lease.isHeld() {
		for _, w := range t.waiters[id] {
			t.checkTaskEnded(c, w)
		}
		return
	}
	for _, w := range t.waiters[id] {
		w.done(status, nil)
	}
	delete(t.waiters, id)
}

// forgetUnknown forgets a task that there was not when its actor looked. Those who wait for its end
// look themselves: they may have come later, and there is one by then if another member has taken
// over, or it was begun apart.
func (t *tasks) forgetUnknown(c actor.Context, k *task) {
	for _, w := range t.waiters[k.id] {
		t.checkTaskEnded(c, w)
	}
	e := t.currentEntry(k)
	if e == nil {
		return
	}
	t.forgetTask(e)
	c.Poison(e.pid) // it still answers what it was handed before
	t.redeliverArrived(c, e)
}

func errNoTask(id string) error {
	return flow.Errorf(flow.NotFound, "there is no task %s", id)
}

func (t *tasks) addWaiter(c actor.Context, w *awaitTask) {
	if !t.m.owned.ownsTask(w.task) {
		w.done("", errMoved(w.task))
		return
	}
	t.waiters[w.task] = append(t.waiters[w.task], w)
	if e := t.entries[w.task]; e == nil || e.ended {
		t.checkTaskEnded(c, w)
	}
}

// checkTaskEnded answers one who waits if the task has ended, or there is none.
func (t *tasks) checkTaskEnded(c actor.Context, w *awaitTask) {
	self := c.Self()
	t.m.runBackground(func() {
		row, err := t.m.store.Task(t.m.ctx, w.task)
		switch {
		case err != nil:
			t.m.sendMessage(self, stopWait{w.task, w})
			w.done("", notFound(err, w.task))
		case flow.TaskStatus(row.Status).Ended():
			t.m.sendMessage(self, stopWait{w.task, w})
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
