package listing

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// Row is what a driver gives to read one row.
type Row interface{ Scan(dest ...any) error }

// Rows is what a driver gives to read many.
type Rows interface {
	Row
	Next() bool
	Err() error
}

// Scan reads Columns and then what follows them.
func Scan(row Row, t *persistence.TaskRow, more ...any) error {
	var labels []byte
	dest := []any{&t.ID, &t.FlowID, &t.VersionID, &t.FlowName, &t.FlowSlug, &t.VersionNumber,
		&t.Status, &t.Cursor, &t.LastAction, &t.Error, &t.Paused, &t.Steps, &t.EndedAt,
		&labels, &t.Params, &t.BodyHash, &t.CreatedAt, &t.UpdatedAt}
	if err := row.Scan(append(dest, more...)...); err != nil {
		return err
	}
	if labels == nil {
		return nil
	}
	if err := json.Unmarshal(labels, &t.Labels); err != nil {
		return fmt.Errorf("labels of task %s: %w", t.ID, err)
	}
	return nil
}

// Collect reads every row with one function.
func Collect[T any](rows Rows, read func(Row, *T) error) ([]T, error) {
	list := []T{}
	for rows.Next() {
		var v T
		if err := read(rows, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Labels is how labels are stored; nil for none.
func Labels(labels map[string]string) (any, error) {
	if len(labels) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(labels)
	return string(text), err
}

// Text is how a text for people is stored: a database cannot keep NUL or broken UTF-8 in a text, and
// an error message must never be the reason that a commit is refused.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
