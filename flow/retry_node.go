package flow

import "cmp"

// checkRetriable returns an error if the node cannot be retried alone. An empty key means the whole
// task.
func (s *State) checkRetriable(key string) error {
	if key == "" {
		return nil
	}
	if s.Root.Plan.Mode() != ModeDag {
		return Errorf(Conflict, "the task is one of graph mode: it goes on where it failed, at no other node")
	}
	n := s.Root.Plan.Nodes[key]
	switch {
	case n == nil:
		return errNoStep(key)
	case s.Closing != nil && len(s.Closing.Undone) > 0:
		return Errorf(Conflict, "the task has undone what it did: retry all of it, or rerun it, which starts a new one")
	case s.Root.nodeState(n).Status() == StepCompleted || s.Root.nodeState(n).Status() == StepSkipped:
		return Errorf(Conflict, "step %.80q is %s: only one that failed can be retried", key, s.Root.nodeState(n).Status())
	}
	return nil
}

// reopenNode resets one failed node of an ended dag, so that it runs again, with the nodes that
// depend on it and the nodes that were interrupted. Other failed nodes stay failed, and the scope
// fails with their error in the end.
func (sc *Scope) reopenNode(key string) {
	named := sc.Plan.Nodes[key]
	if named == nil || sc.Plan.Dag == nil {
		return
	}
	again := map[int]bool{}
	for todo := []int{named.Dag.Index}; len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !again[i] {
			again[i] = true
			todo = append(todo, sc.Plan.Dag.List[i].Dag.Dependents...)
		}
	}
	sc.resetNodes(func(i int) bool {
		n := &sc.Nodes[i]
		return !n.Ended() || again[i] && n.Status() != StepCompleted
	})
	sc.Failed, sc.FailedAt, sc.EnterAt, sc.Retries = "", "", 0, 0
	for i, n := range sc.Plan.Dag.List {
		if is := &sc.Nodes[i]; is.Status() == StepFailed && sc.Failed == "" {
			sc.Failed, sc.FailedAt = n.Key+": "+cmp.Or(is.Rare().Error, "failed"), n.Key
		}
	}
}
