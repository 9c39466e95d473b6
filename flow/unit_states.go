package flow

// UnitRun is a number of consecutive units with the same status.
type UnitRun struct {
	Count  int
	Status UnitStatus
}

// States returns the status of all units in order, with consecutive equal ones combined.
func (l *UnitList) States() []UnitRun {
	runs := []UnitRun{}
	for i := range l.Len() {
		status := l.Step.Units[i].Status
		if !status.Ended() && l.isOver() {
			status = UnitCanceled
		}
		if last := len(runs) - 1; last >= 0 && runs[last].Status == status {
			runs[last].Count++
			continue
		}
		runs = append(runs, UnitRun{1, status})
	}
	return runs
}

// isOver reports whether the units will not change any more.
func (l *UnitList) isOver() bool {
	return l.State.Status.Ended() || l.State.activeStep(l.Step.Address()) != l.Step
}

// Settled reports whether the list will never change, because its visit has ended. It is false
// after the end of the task, because a retry may continue the visit.
func (l *UnitList) Settled() bool {
	return l.Step != nil && l.State.activeStep(l.Step.Address()) != l.Step
}
