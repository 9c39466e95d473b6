package flow

// UnitRun is so many units in a row in the same state.
type UnitRun struct {
	Count  int
	Status UnitStatus
}

// States are the states of all units, in order: as few runs as there can be.
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

// isOver reports whether the units are as they will always be.
func (l *UnitList) isOver() bool {
	return l.State.Status.Ended() || l.State.activeStep(l.Step.Address()) != l.Step
}

// Settled reports whether the list will always be what it is: its visit is over. A list of a task
// that has ended is not, since a retry may go on with it.
func (l *UnitList) Settled() bool {
	return l.Step != nil && l.State.activeStep(l.Step.Address()) != l.Step
}
