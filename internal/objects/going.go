package objects

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"time"
)

// goingFolder has a note for each deletion of tasks that is under way, or was cut short.
const goingFolder = "going/"

// maxGoing is how many bytes of a note are read: the ids of many more tasks than are deleted at
// once.
const maxGoing = 64 << 20

// NoteGoing notes which runs are about to be deleted, and tells the key of the note.
func NoteGoing(ctx context.Context, b Bucket, runs []string) (key string, err error) {
	text, err := json.Marshal(runs)
	if err != nil {
		return "", err
	}
	key = goingFolder + rand.Text() + ".json"
	return key, b.Put(ctx, key, text)
}

// NotesOfGoing are the runs in notes that were written before a time, by the keys of these.
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
		if errors.Is(err, fs.ErrNotExist) { // somebody else was first
			continue
		}
		if err != nil {
			return nil, err
		}
		var runs []string
		if json.Unmarshal(text, &runs) == nil { // it is whole, or not ours
			notes[o.Key] = runs
		}
	}
	return notes, nil
}
