package objects

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
)

// sweptFile says how far the files of ended tasks have been deleted, for whichever member goes on.
const sweptFile = "swept.json"

type sweepMark struct {
	EndedAt int64 `json:"ended_at"`
}

// Swept is up to which end of tasks their files were deleted; 0 = nobody knows.
func Swept(ctx context.Context, b Bucket) (endedAt int64, err error) {
	text, err := b.Get(ctx, sweptFile, 1000)
	var s sweepMark
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err == nil && json.Unmarshal(text, &s) != nil: // whoever begins anew finds nothing to delete
		return 0, nil
	}
	return s.EndedAt, err
}

// NoteSwept writes it down.
func NoteSwept(ctx context.Context, b Bucket, endedAt int64) error {
	text, err := json.Marshal(sweepMark{endedAt})
	if err != nil {
		return err
	}
	return b.Put(ctx, sweptFile, text)
}
