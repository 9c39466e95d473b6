package actors

import (
	"container/list"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Messages to the tasks actor.
type (
	// taskCommand is a command for a task. reply is called once, after the commit.
	taskCommand struct {
		task    string
		command flow.Command
		request string
		reply   func(commandAnswer) // nil if no caller waits
		events  bool                // the answer must contain the events of the command
		refused int                 // how often the store refused the command's row

		orderPoll *poller // poll sent with the order, for jobs that the order starts; may be nil
		unlisted  bool    // the command claims a job that needs no row in the queue
	}
	// createTask starts a task.
	createTask struct {
		task   string
		plan   *flow.Plan
		start  flow.Start
		create *persistence.Create
		// an existing task of another version of the flow counts as the same
		newest bool
		// existing task with the same key that the start cannot continue; nil if none
		repeats *persistence.TaskRow
		reply   func(commandAnswer)
	}
	// wakeTasks loads tasks that have something to do.
	wakeTasks struct {
		tasks    []string
		onLoaded func() // called for each task that is loaded or cannot be; may be nil
	}
	// awaitTask waits for the end of a task. done is called then.
	awaitTask struct {
		task string
		done func(flow.TaskStatus, error)
	}
	// Messages of task actors about themselves.
	taskEnded struct {
		task   *task
		status flow.TaskStatus
		gone   bool // the actor has nothing more to do
	}
	taskUnknown struct{ task *task }
	restAnswer  struct {
		task *task
		ok   bool
	}
	taskRested struct {
		task  *task
		moved bool // another member may own the task
	}
	taskDeparted struct{ task *task } // a task that rested for another member has stopped
	stopWait     struct {
		task string
		key  *awaitTask
	}
	sweepTasks struct{}
	restAll    struct{ done func() }
	// reviveTask ends a pause after a crash.
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

// commandAnswer is the answer to a command, after the commit that it depends on.
type commandAnswer struct {
	err error
	job *flow.Job // for a Claim
	// for a refused Claim: when the claim of another poller ends; 0 if no poller has the job
	held    int64
	changed int          // number of events of the command
	events  []flow.Event // the events, if the command asks for them
	first   int          // for an Append: index of the first unit
	given   int          // for a Bring: the new delivery number of the attempt
}

func (c *taskCommand) sendAnswer(a commandAnswer) {
	if reply := c.reply; reply != nil {
		c.reply = nil
		reply(a)
	}
}

// isJobReport reports whether a command is a report of this member's jobs, for which no caller
// waits.
func (c *taskCommand) isJobReport() bool {
	switch c.command.(type) {
	case flow.Report, flow.Reports:
		return c.reply == nil
	}
	return false
}

// taskEntry is a task in memory. While it is retiring, it keeps the messages that arrive.
type taskEntry struct {
	id       string
	pid      *actor.PID
	task     *task
	used     int64 // time of the last message
	element  *list.Element
	retiring bool
	ended    bool // the callers that wait for the end were answered
	arrived  []any
}

// tasks is the parent of all task actors, and the only component that knows which tasks are in
// memory.
type tasks struct {
	m              *Member
	entries        map[string]*taskEntry
	byPID          map[string]*taskEntry // by actor id, for crashes
	taskSupervisor *taskSupervisor
	byUse          *list.List // entries of type *taskEntry, longest unused first
	waiters        map[string][]*awaitTask
	crashes        map[string]int // crashes of each task since it last ended or rested
	// values that crashed tasks lack, by task; kept as long as crashes
	missingValues map[string]string
	pauses        map[string]*crashPause
	resting       bool   // all tasks must rest because the member stops
	onAllRested   func() // called once when all tasks rest
	retired       int    // tasks retired since memory was last returned to the system
	counted       int    // value of retired at the last sweep
	restAsked     int    // number of tasks with an unanswered request to rest
	closed        bool

	handovers []*shardHandover
	// tasks of departing shards that are not asked to rest yet
	tasksToMove []*taskEntry
	// number of tasks, by shard, that are in memory or paused after a crash; not counted if the
	// member owns all shards
	inMemory [persistence.Shards]int
}

func newTasks(m *Member) *tasks {
	return &tasks{m: m, taskSupervisor: &taskSupervisor{m}, entries: map[string]*taskEntry{},
		byPID: map[string]*taskEntry{}, byUse: list.New(),
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
		// else the pause has ended already, and another one may have started
		if t.pauses[m.task] == m.pause {
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

// stopAll stops all task actors with their parent.
func (t *tasks) stopAll(c actor.Context) {
	t.closed = true
	for el := t.byUse.Front(); el != nil; el = el.Next() {
		c.Stop(el.Value.(*taskEntry).pid)
	}
}

// deliverMessage sends a message to a task, and loads the task if needed.
func (t *tasks) deliverMessage(c actor.Context, id string, message any) {
	e := t.entries[id]
	if e == nil && t.resting {
		t.refuseMessages([]any{message})
		return
	}
	p := t.pauses[id]
	if !t.m.owned.OwnsTask(id) && (e == nil && p == nil || awaitsReply(message)) {
		t.redirectMessage(message)
		return
	}
	if p != nil {
		p.holdMessage(message)
		return
	}
	if e == nil {
		e = t.openTask(c, id, storedTask(t.m, id))
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
	if !t.m.owned.OwnsTask(m.task) {
		m.reply(commandAnswer{err: errMoved(m.task)})
		return
	}
	if e := t.entries[m.task]; e != nil {
		// The task exists or is being started by another request. This request is answered when
		// that start is stored.
		t.sendToEntry(c, e, &taskCommand{task: m.task, command: m.start,
			reply: func(a commandAnswer) { m.reply(commandAnswer{err: secondStartError(a.err)}) }})
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
	e := t.openTask(c, m.task, newTask(t.m, m))
	t.sendToEntry(c, e, &taskCommand{task: m.task, command: m.start, reply: m.reply})
}

// secondStartError converts the result of the first start into the answer to a concurrent second
// start.
func secondStartError(err error) error {
	switch flow.ErrorKindOf(err) {
	case flow.Busy:
		return err
	case flow.NotFound:
		return errCrashed // the first start failed
	}
	return persistence.ErrExists
}

func (t *tasks) wakeTasks(c actor.Context, m wakeTasks) {
	for _, id := range m.tasks {
		switch {
		case t.entries[id] == nil && t.pauses[id] == nil && !t.resting && t.m.owned.OwnsTask(id):
			k := storedTask(t.m, id)
			k.onLoaded = m.onLoaded
			t.openTask(c, id, k)
		case m.onLoaded != nil:
			m.onLoaded()
		}
	}
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

// redeliverArrived delivers the messages that arrived while a task retired.
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
	t.m.counts.rested.Add(1)
	t.forgetTask(e)
	c.Poison(e.pid) // it first forwards the messages in its mailbox
	t.redeliverArrived(c, e)
	t.retireMore(c)
}

// notifyWaiters answers callers that wait for the end of a task. Without a held lease, another
// member may have undone the end, so it reads the store for each caller.
func (t *tasks) notifyWaiters(c actor.Context, id string, status flow.TaskStatus) {
	if !t.m.lease.IsHeld() {
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

// forgetUnknown removes the actor of a task that did not exist when it was loaded. It reads the
// store for waiting callers, because another member or Begin may have created the task since.
func (t *tasks) forgetUnknown(c actor.Context, k *task) {
	for _, w := range t.waiters[k.id] {
		t.checkTaskEnded(c, w)
	}
	e := t.currentEntry(k)
	if e == nil {
		return
	}
	t.forgetTask(e)
	c.Poison(e.pid) // the actor first answers earlier messages
	t.redeliverArrived(c, e)
}

func errNoTask(id string) error {
	return flow.Errorf(flow.NotFound, "there is no task %s", id)
}

func (t *tasks) addWaiter(c actor.Context, w *awaitTask) {
	if !t.m.owned.OwnsTask(w.task) {
		w.done("", errMoved(w.task))
		return
	}
	t.waiters[w.task] = append(t.waiters[w.task], w)
	if e := t.entries[w.task]; e == nil || e.ended {
		t.checkTaskEnded(c, w)
	}
}

// checkTaskEnded reads a task from the store, and answers a waiting caller if the task has ended or
// does not exist.
func (t *tasks) checkTaskEnded(c actor.Context, w *awaitTask) {
	self := c.Self()
	t.m.work.Run(func() {
		row, err := t.m.store.Task(t.m.work.Context(), w.task)
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
