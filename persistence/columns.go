package persistence

import "github.com/troupe-engine/troupe/flow"

// ColumnsOf returns the listing columns of a task in the given state.
func ColumnsOf(s *flow.State) Columns {
	c := Columns{
		Status: string(s.Status), Cursor: s.Root.Cursor, LastAction: s.Root.LastAction, Error: s.Error,
		Paused: s.Paused(), Steps: s.Steps, Followed: s.Followed, EndedAt: s.EndedAt,
	}
	kinds, first := s.Waits()
	if c.Waits = kinds; first != nil {
		c.Wait = *first
	}
	return c
}
