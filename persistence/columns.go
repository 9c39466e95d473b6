package persistence

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

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

// CleanText returns the stored form of a text for people. Databases cannot store NUL or invalid
// UTF-8 in a text, and an error message must never make a commit fail.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
