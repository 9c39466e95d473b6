package actors

// The methods of a task are grouped by purpose. A group is a wrapper of the task pointer, so it
// costs nothing to create. Calls between groups name the group, as in t.restPart().
type (
	// taskLoading loads the state from the store, also after a crash or a refused row.
	taskLoading struct{ *task }
	// taskResting puts the task to rest, or hands it over to another member.
	taskResting struct{ *task }
	// taskJournal builds the rows of the journal, and counts the stored ones.
	taskJournal struct{ *task }
	// taskTurns limits how much work the task does at once.
	taskTurns struct{ *task }
)

func (t *task) loadPart() taskLoading    { return taskLoading{t} }
func (t *task) restPart() taskResting    { return taskResting{t} }
func (t *task) journalPart() taskJournal { return taskJournal{t} }
func (t *task) turnPart() taskTurns      { return taskTurns{t} }
