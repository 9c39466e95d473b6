package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// simUser starts a task, sends its signals, interferes a little, and waits for its end.
type simUser struct {
	*simRun
	name    string
	play    *flowScenario
	version string
	task    string
	cancels bool
	forced  bool // compensations may have been cut short
	done    bool // the task has finally ended
	ended   bool
	sent    map[string]bool
	pending int // helper coroutines still running
}

// runUser runs the user from start to end.
func (u *simUser) runUser() {
	u.w.sleepFor(u.w.upTo(3 * time.Second))
	u.startTask()
	for _, key := range slices.Sorted(maps.Keys(u.play.signals)) {
		u.runHelper(func() {
			u.w.sleepFor(u.w.upTo(12 * time.Second))
			u.sendUntilAnswered(flow.Signal{Key: key, Value: u.play.signals[key]})
			u.sent[key] = true
		})
	}
	if len(u.play.signals) > 0 {
		u.runHelper(u.signalAgain)
	}
	if u.w.drawChance(300) {
		u.runHelper(u.pauseAndResume)
	}
	if u.w.drawChance(60) || u.play.direct && u.w.drawChance(200) {
		u.runHelper(u.cancelTask)
	}
	if u.play.dag {
		u.runHelper(u.finishUnits)
	}
	if u.w.drawChance(200) {
		u.runHelper(u.sendInvalid)
	}
	if u.w.drawChance(200) {
		u.runHelper(u.watchJournal)
	}
	u.awaitEnd()
	if u.play.again {
		u.retryTask()
	}
	u.done = true
	if u.play.dag {
		u.finishLeftovers()
	}
	u.w.parkUntil(func() bool { return u.pending == 0 })
	u.ended = true
}

// signalAgain repeats signals that steps await in another visit.
func (u *simUser) signalAgain() {
	for !u.done {
		u.w.sleepFor(500*time.Millisecond + u.w.upTo(time.Second))
		t := u.check.tasks[u.task]
		if t == nil || u.done {
			continue
		}
		for _, key := range u.play.awaitedSignals(t.state) {
			if u.sent[key] {
				u.sendUntilAnswered(flow.Signal{Key: key, Value: u.play.signals[key]})
			}
		}
	}
}

func (u *simUser) runHelper(f func()) {
	u.pending++
	u.w.startCoroutine(u.outside, u.name, func() {
		defer func() { u.pending-- }()
		f()
	})
}

// startTask starts the task. The idempotency key makes retries safe.
func (u *simUser) startTask() {
	n := engine.NewTask{VersionID: u.version, Params: u.play.params, Key: u.name}
	for {
		ctx, stop := u.withPatience()
		rewinds := u.w.rewinds
		started, err := u.anyMember().StartTask(ctx, n)
		id := started.Task
		stop()
		if err == nil {
			u.task = id
			if u.store.tasks[id] == nil && rewinds == u.w.rewinds {
				u.w.failRun("the start of task %s was acknowledged and is not stored", id)
			}
			u.w.addTrace("%s has started %s", u.name, id)
			break
		}
		u.checkServed("a start", err)
		// a rewind has lost the command
		if kind := flow.ErrorKindOf(err); kind != "" && kind != flow.Busy && !(kind == flow.NotFound && u.options.Rewinds) {
			u.w.failRun("%s could not start: %v", u.name, err)
		}
		u.w.sleepFor(50*time.Millisecond + u.w.upTo(time.Second))
	}
	if !u.options.Rewinds && u.w.drawChance(200) {
		u.runHelper(func() { u.startAgain(n) })
	}
}

// startAgain repeats the start, with the same or different params and the same key.
func (u *simUser) startAgain(n engine.NewTask) {
	other := u.w.drawChance(500)
	if other {
		n.Params = json.RawMessage(`{"other":true}`)
	}
	ctx, stop := u.withPatience()
	defer stop()
	started, err := u.anyMember().StartTask(ctx, n)
	id, created := started.Task, started.Created
	switch {
	case err == nil && (other || created || id != u.task):
		u.w.failRun("%s was started twice: %s (created: %v)", u.task, id, created)
	case flow.ErrorKindOf(err) == flow.Conflict && !other:
		u.w.failRun("a repeated start of %s is refused: %v", u.task, err)
	}
}

// sendUntilAnswered repeats a command under the same request id until an answer arrives.
func (u *simUser) sendUntilAnswered(cmd flow.Command) error {
	u.requests++
	request := fmt.Sprintf("%s/%d", u.name, u.requests)
	for {
		err := u.sendOnce(cmd, request)
		if err == nil || flow.ErrorKindOf(err) != "" && flow.ErrorKindOf(err) != flow.Busy {
			if err == nil && u.w.drawChance(100) { // a client may have missed the answer
				u.w.sleepFor(u.w.upTo(time.Second))
				_ = u.sendOnce(cmd, request)
			}
			return err
		}
		u.w.sleepFor(50*time.Millisecond + u.w.upTo(time.Second))
	}
}

func (u *simUser) sendOnce(cmd flow.Command, request string) error {
	ctx, stop := u.withPatience()
	defer stop()
	quiet, retries := u.isQuiet(), u.check.countRetries(u.task)
	err := doCommand(ctx, u.anyMember(), u.task, cmd, request)
	u.checkPatience(quiet, "Do", err)
	u.checkServed(fmt.Sprintf("%T %s", cmd, request), err)
	u.w.addTrace("%s: %T %s is answered: %v", u.name, cmd, request, err)
	_, cancel := cmd.(flow.Cancel)
	// a cancel may have arrived after the end and before the retry
	if again := u.check.countRetries(u.task) > retries; err == nil && !(cancel && again) {
		u.check.checkAnswered(u.task, cmd, request)
	}
	return err
}

func (u *simUser) pauseAndResume() {
	for range 1 + u.w.rng.IntN(3) {
		u.w.sleepFor(u.w.upTo(5 * time.Second))
		_ = u.sendUntilAnswered(flow.Pause{})
		u.w.sleepFor(u.w.upTo(3 * time.Second))
		_ = u.sendUntilAnswered(flow.Resume{})
	}
}

func (u *simUser) cancelTask() {
	u.cancels = true
	u.w.sleepFor(u.w.upTo(10 * time.Second))
	how := flow.Cancel{Gently: u.w.drawChance(400) || u.play.direct}
	if err := u.sendUntilAnswered(how); err != nil {
		u.w.failRun("Cancel of %s is refused: %v", u.task, err)
	}
	if u.w.drawChance(200) {
		u.forced = true
		u.w.sleepFor(u.w.upTo(time.Second))
		_ = u.sendUntilAnswered(flow.Cancel{Force: true})
	}
}

// sendInvalid sends a signal that must be refused and change nothing.
func (u *simUser) sendInvalid() {
	u.w.sleepFor(u.w.upTo(5 * time.Second))
	if err := u.sendUntilAnswered(flow.Signal{Key: "_rt", Value: json.RawMessage(`1`)}); flow.ErrorKindOf(err) != flow.Invalid {
		u.w.failRun("a signal to _rt is answered with %v", err)
	}
	if err := u.sendUntilAnswered(flow.Signal{Key: "x",
		Value: json.RawMessage(`"` + poison + `"`)}); flow.ErrorKindOf(err) != flow.Invalid {
		u.w.failRun("a signal that the store refuses is answered with %v", err)
	}
	deep := json.RawMessage(strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000))
	if err := u.sendUntilAnswered(flow.Signal{Key: "x", Value: deep}); flow.ErrorKindOf(err) != flow.Limit {
		u.w.failRun("a signal that nests too deep is answered with %v", err)
	}
	ctx, stop := u.withPatience()
	defer stop()
	poisoned := engine.NewTask{VersionID: u.version, Params: json.RawMessage(`{"x":"` + poison + `"}`), Key: u.name + " poisoned"}
	_, err := u.anyMember().StartTask(ctx, poisoned)
	if kind := flow.ErrorKindOf(err); err == nil || kind != "" && kind != flow.Invalid && kind != flow.Busy {
		u.w.failRun("a start that the store refuses is answered with %v", err)
	}
	err = doCommand(ctx, u.anyMember(), "task-of-nobody", flow.Cancel{}, "")
	if kind := flow.ErrorKindOf(err); err == nil || kind != "" && kind != flow.NotFound && kind != flow.Busy {
		u.w.failRun("a command to a task that does not exist is answered with %v", err)
	}
}

// watchJournal reads the journal as it grows.
func (u *simUser) watchJournal() {
	u.w.sleepFor(u.w.upTo(5 * time.Second))
	ctx, stop := u.withPatience()
	defer stop()
	seq, ended := int64(0), false
	for row, err := range u.anyMember().Watch(ctx, u.task, 0) {
		if err != nil {
			return
		}
		if row.Seq != seq+1 {
			u.w.failRun("a watcher of %s sees row %d after %d", u.task, row.Seq, seq)
		}
		seq, ended = row.Seq, endedAfter(ended, row.Events)
	}
	if !ended && ctx.Err() == nil {
		u.w.failRun("a watcher of %s is told that row %d is the last one, and the task had not ended", u.task, seq)
	}
}

// endedAfter reports whether a task has ended after a row of events; a retry takes an end back.
func endedAfter(ended bool, row []byte) bool {
	events, err := flow.DecodeEvents(row)
	for _, e := range events {
		switch e.Type {
		case flow.TaskEnded:
			ended = true
		case flow.TaskRetried:
			ended = false
		}
	}
	return ended && err == nil
}

func (u *simUser) awaitEnd() {
	for {
		ctx, stop := u.withPatience()
		status, err := u.anyMember().Await(ctx, u.task)
		stop()
		if err == nil {
			if row := u.store.tasks[u.task]; row == nil || row.Status != string(status) {
				u.w.failRun("the end of %s (%s) is told, and is not stored", u.task, status)
			}
			u.w.addTrace("%s knows that %s is %s", u.name, u.task, status)
			return
		}
		if flow.ErrorKindOf(err) == flow.NotFound {
			u.w.failRun("nobody knows task %s: %v", u.task, err)
		}
		u.w.sleepFor(50*time.Millisecond + u.w.upTo(time.Second))
	}
}

// verifyOutcome compares the end with the reference outcome.
func (u *simUser) verifyOutcome() {
	t := u.check.tasks[u.task]
	if !u.forced {
		u.check.checkUndone(t)
	}
	if p, bad := t.reruns.inVain(); bad {
		u.w.failRun("task %s did %+v again, which was done; its flow is %s with %s", u.task, p, u.play.definition, u.play.params)
	}
	if u.play.code != nil {
		u.verifyFunction(t.state)
		return
	}
	var got taskOutcome
	if u.play.dag {
		got = dagOutcomeOf(t.state)
	} else {
		got = outcomeOf(t.state, u.play.signals)
	}
	if u.cancels && got.Status == flow.TaskCanceled {
		return
	}
	want := u.play.want
	if u.shrinks && u.members > 1 || u.limits.Deliveries != endless {
		return // smaller limits, or the number of lost attempts, decide the end
	}
	if u.play.loose || u.forced { // only the status of an interrupted task is certain
		want, got = taskOutcome{Status: want.Status}, taskOutcome{Status: got.Status}
	}
	if got != want {
		u.w.failRun("task %s ended as %+v, it should be %+v; its flow is %s with %s", u.task, got, want, u.play.definition, u.play.params)
	}
}
