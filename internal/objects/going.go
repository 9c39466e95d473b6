package objects

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"time"
)

// goingFolder holds a note for each deletion of tasks that is in progress or was interrupted.
const goingFolder = "going/"

// maxGoing is the largest number of bytes read from a note. That is enough for the ids of many more
// tasks than one deletion has.
const maxGoing = 64 << 20

// NoteGoing records which runs are about to be deleted and returns the key of the note.
func NoteGoing(ctx context.Context, b Bucket, runs []string) (key string, err error) {
	text, err := json.Marshal(runs)
	if err != nil {
		return "", err
	}
	key = goingFolder + rand.Text() + ".json"
	return key, b.Put(ctx, key, text)
}

// NotesOfGoing returns the runs in notes that were written before the given time, by the keys of
// the notes.
func NotesOfGoing(ctx context.Context, b Bucket, before time.Time) (map[string][]string, error) {
	list, err := b.List(ctx, goingFolder)
	if err != nil {
		return nil, err
	}
	notes := map[string][]string{}
	for _, o := range list {
		if !o.Written.Before(before) {
			continue
		}
		text, err := b.Get(ctx, o.Key, maxGoing)
		if errors.Is(err, fs.ErrNotExist) { // another member was first
			continue
		}
		if err != nil {
			return nil, err
		}
		var runs []string
		if json.Unmarshal(text, &runs) == nil { // a note that does not parse was not written by us
			notes[o.Key] = runs
		}
	}
	return notes, nil
}
