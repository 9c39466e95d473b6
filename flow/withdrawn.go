package flow

// overAt is when a scope was over with all that was active in it; 0 when it is not.
func (s *State) overAt(sc *Scope) int64 {
	if sc.overAt == 0 && s.Status.Ended() {
		return s.EndedAt
	}
	return sc.overAt
}

// withdrawn makes the view of a step that had begun that of a step which came to nothing.
func (v *StepView) withdrawn(at int64) {
	v.Status, v.Reason, v.EndedAt, v.Wait, v.Due = StepSkipped, ReasonWithdrawn, at, nil, 0
	v.Units.Flying, v.Units.Retrying = 0, 0
}

// withdrawn says whether a node has begun and will not end.
func (s *State) withdrawn(n *NodeState) bool {
	return n.Status == StepStarted && (n.Step == nil || s.Status.Ended())
}
