package persistence

import "github.com/troupe-engine/troupe/flow"

// ColumnsOf are the columns of a task in a state.
func ColumnsOf(s *flow.State) Columns {
	return Columns{
		Status: string(s.Status), Cursor: s.Root.Cursor, LastAction: s.Root.LastAction, Error: s.Error,
		Paused: s.Paused(), Steps: s.Steps, Followed: s.Followed, EndedAt: s.EndedAt,
	}
}
