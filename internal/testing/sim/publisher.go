package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// flowPublisher publishes a flow, deletes it and publishes another under the same slug, while
// others start tasks by that slug.
type flowPublisher struct {
	*simRun
	slug     string
	versions []string // published versions, in order
	deleted  int      // number of versions known to be deleted
	library  persistence.Store
	started  map[string]string // version of each task
	pending  int
	ended    bool
}

func (st *simRun) addPublisher() {
	p := &flowPublisher{simRun: st, slug: "moving", started: map[string]string{}}
	p.library = persistence.Newest(&storeConn{Store: st.store, w: st.w, h: st.outside}, st.outside.Now)
	st.publisher = p
	st.w.startCoroutine(st.outside, p.slug, p.runPublisher)
}

func (p *flowPublisher) runPublisher() {
	for range 1 + p.w.rng.IntN(3) {
		p.publishFlow()
		for range 1 + p.w.rng.IntN(3) {
			p.pending++
			p.w.startCoroutine(p.outside, p.slug, p.startTasks)
		}
		p.w.sleepFor(p.w.upTo(6 * time.Second))
		if p.w.drawChance(700) {
			p.deleteFlow()
		}
	}
	p.w.parkUntil(func() bool { return p.pending == 0 })
	p.endAll()
	p.ended = true
}

// movingFlow returns a flow whose tasks run briefly and then wait.
func movingFlow(rng interface{ IntN(int) int }) []byte {
	ways := []object{{"service": "echo", "exec_type": "queue"}, {"exec_type": "local_func", "func": "echo"}, {"service": "echo"}}
	return encodeValue(object{"start": "a", "edges": []object{{"from": "a", "action": "default", "to": "b"}}, "nodes": object{
		"a": ways[rng.IntN(len(ways))],
		"b": object{"kind": "approval", "params": object{"approval_key": "$shared.ok"}},
	}})
}

func (p *flowPublisher) publishFlow() {
	n := len(p.versions)
	f := persistence.Flow{ID: fmt.Sprint(p.slug, "-", n), Slug: p.slug}
	v := persistence.Version{ID: f.ID + "-version", FlowID: f.ID, Number: 1, Status: "published", Definition: movingFlow(p.w.rng)}
	if p.deleted < n { // a new version of the existing flow
		v.FlowID, v.Number = fmt.Sprint(p.slug, "-", p.deleted), n+1
	}
	plan, problems := compile.Text(v.Definition, p.limits)
	if problems.Err() != nil {
		p.w.failRun("flow %s: %v", v.Definition, problems)
	}
	p.check.notePlan(v.ID, plan)
	if v.FlowID == f.ID {
		p.persistUntilDone("CreateFlow", func(ctx context.Context) error { return p.library.CreateFlow(ctx, f) })
	}
	p.versions = append(p.versions, v.ID)
	p.persistUntilDone("CreateVersion", func(ctx context.Context) error { return p.library.CreateVersion(ctx, v) })
	p.w.addTrace("%s is published", v.ID)
}

// persistUntilDone calls the store until it answers. An existing record means that an earlier
// answer was lost.
func (p *flowPublisher) persistUntilDone(what string, ask func(context.Context) error) {
	for {
		err := ask(context.Background())
		if err == nil || errors.Is(err, persistence.ErrDuplicate) {
			return
		}
		if !isLossError(err) {
			p.w.failRun("%s: %v", what, err)
		}
		p.w.sleepFor(p.w.upTo(100 * time.Millisecond))
	}
}

func (p *flowPublisher) deleteFlow() {
	id := p.store.versions[p.versions[len(p.versions)-1]].FlowID
	if p.w.drawChance(500) {
		p.cancelTasks(id)
	}
	const part = 2
	for n := part; n == part; {
		p.persistUntilDone("DeleteFlow", func(ctx context.Context) (err error) {
			n, err = p.library.DeleteFlow(ctx, id, part)
			return err
		})
	}
	p.deleted = len(p.versions)
	p.w.addTrace("%s is deleted", id)
}

// cancelTasks cancels the known tasks of a flow that is about to be deleted.
func (p *flowPublisher) cancelTasks(flowID string) {
	for _, task := range p.tasksOf(func(version string) bool { return p.store.versions[version].FlowID == flowID }) {
		_ = p.sendUntilAnswered(task, flow.Cancel{})
	}
}

func (p *flowPublisher) tasksOf(version func(string) bool) (tasks []string) {
	for task, of := range p.started {
		if version(of) {
			tasks = append(tasks, task)
		}
	}
	slices.Sort(tasks)
	return tasks
}

// startTasks starts a few tasks of the current flow.
func (p *flowPublisher) startTasks() {
	defer func() { p.pending-- }()
	for range 1 + p.w.rng.IntN(4) {
		p.w.sleepFor(p.w.upTo(3 * time.Second))
		version, ok := p.lookUp()
		if !ok {
			continue
		}
		if p.w.drawChance(300) { // the caller may be slow after reading the version
			p.w.sleepFor(p.w.upTo(4 * time.Second))
		}
		p.startTask(version)
	}
}

// lookUp returns the newest version under the slug. It checks that this is not a flow deleted
// earlier.
func (p *flowPublisher) lookUp() (version string, ok bool) {
	gone := p.deleted
	f, err := p.library.FlowBySlug(context.Background(), p.slug)
	if err != nil {
		return "", false
	}
	v, err := p.library.FindVersion(context.Background(), f.ID, 0)
	if err != nil {
		return "", false
	}
	if slices.Index(p.versions, v.ID) < gone {
		p.w.failRun("%s is found after it was deleted", v.ID)
	}
	return v.ID, true
}

// startTask repeats the start until it is answered, because an unanswered start may take effect
// later.
func (p *flowPublisher) startTask(version string) {
	p.requests++
	n := engine.NewTask{VersionID: version, Params: json.RawMessage(`{}`), Key: fmt.Sprint(p.slug, p.requests)}
	for !p.tryStart(version, n) {
		p.w.sleepFor(p.w.upTo(time.Second))
	}
}

func (p *flowPublisher) tryStart(version string, n engine.NewTask) (answered bool) {
	ctx, stop := p.withPatience()
	defer stop()
	gone := slices.Index(p.versions, version) < p.deleted
	started, err := p.anyMember().StartTask(ctx, n)
	id := started.Task
	p.w.addTrace("a start of %s is answered: %s %v", version, id, err)
	kind := flow.ErrorKindOf(err)
	switch {
	case err == nil && gone:
		p.w.failRun("task %s of %s was started, which was deleted before", id, version)
	case err == nil && p.check.tasks[id] == nil:
		p.w.failRun("the start of task %s was acknowledged and is not stored", id)
	case err == nil:
		p.started[id] = version
	case kind == flow.NotFound && p.store.hasVersion(version) && !p.isGone(n, version):
		p.w.failRun("a start of %s, which is there, is answered with %v", version, err)
	case kind != "" && kind != flow.NotFound && kind != flow.Busy:
		p.w.failRun("a start of %s is answered with %v", version, err)
	}
	return err == nil || kind == flow.NotFound
}

// isGone reports whether a task existed already and was deleted: its flow is being deleted.
func (p *flowPublisher) isGone(n engine.NewTask, version string) bool {
	id, err := n.TaskID(p.store.versions[version].FlowID)
	task := p.check.tasks[id]
	return err == nil && task != nil && task.deleted
}

// endAll ends all remaining tasks, including tasks with unanswered starts, and checks that all
// deleted data is gone.
func (p *flowPublisher) endAll() {
	gone := p.tasksOf(func(version string) bool { return !p.store.hasVersion(version) })
	p.w.parkUntil(func() bool { return len(p.activeMembers) > 0 })
	for id, t := range p.store.tasks {
		if slices.Contains(p.versions, t.VersionID) {
			p.started[id] = t.VersionID
		}
	}
	for _, task := range p.tasksOf(p.store.hasVersion) {
		if err := p.sendUntilAnswered(task, flow.Cancel{}); err != nil {
			p.w.failRun("Cancel of %s is refused: %v", task, err)
		}
	}
	for _, task := range gone {
		if err := p.sendUntilAnswered(task, flow.Signal{Key: "ok",
			Value: json.RawMessage(`true`)}); flow.ErrorKindOf(err) != flow.NotFound {
			p.w.failRun("a signal to %s, which was deleted, is answered with %v", task, err)
		}
	}
}

// sendUntilAnswered repeats a command until it is answered.
func (p *flowPublisher) sendUntilAnswered(task string, cmd flow.Command) error {
	for {
		ctx, stop := p.withPatience()
		err := doCommand(ctx, p.anyMember(), task, cmd, "")
		stop()
		if err == nil || flow.ErrorKindOf(err) != "" && flow.ErrorKindOf(err) != flow.Busy {
			return err
		}
		p.w.sleepFor(50*time.Millisecond + p.w.upTo(time.Second))
	}
}
