package objects

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
)

// sweptFile stores how far the files of ended tasks have been deleted, so that any member can
// continue.
const sweptFile = "swept.json"

type sweepMark struct {
	EndedAt int64 `json:"ended_at"`
}

// Swept returns the end time up to which the files of ended tasks were deleted; 0 if unknown.
func Swept(ctx context.Context, b Bucket) (endedAt int64, err error) {
	text, err := b.Get(ctx, sweptFile, 1000)
	var s sweepMark
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	// starting from the beginning is safe: there is nothing to delete
	case err == nil && json.Unmarshal(text, &s) != nil:
		return 0, nil
	}
	return s.EndedAt, err
}

// NoteSwept stores the end time up to which the files of ended tasks were deleted.
func NoteSwept(ctx context.Context, b Bucket, endedAt int64) error {
	text, err := json.Marshal(sweepMark{endedAt})
	if err != nil {
		return err
	}
	return b.Put(ctx, sweptFile, text)
}
