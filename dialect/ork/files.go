package ork

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// The files beside workflows whose settings apply to all of them.
const (
	SettingsFile  = "ork.yaml"
	WorkersFile   = "workers.yaml"
	LocationsFile = "locations.yaml"
)

// Beside is a file beside workflows.
type Beside struct {
	Name string // name of the file in messages; "" if there is no file
	Text []byte
}

// IsBeside reports whether a file is one of the files beside workflows. Such a file has one of
// their names, and no tasks or nodes.
func IsBeside(name string, text []byte) bool {
	if !slices.Contains([]string{SettingsFile, WorkersFile, LocationsFile}, name) {
		return false
	}
	raw, _ := definition.Read(text)
	for _, field := range []string{"tasks", "nodes", "start", "job_name", "import"} {
		if _, has := expr.Field(raw, field); has {
			return false
		}
	}
	return true
}

// CheckBeside returns all problems of a file beside workflows.
func CheckBeside(f Beside) definition.Problems {
	r := &reader{}
	switch f.Name {
	case SettingsFile:
		r.readSettings(f)
	case WorkersFile:
		r.readWorkers(f)
	case LocationsFile:
		r.readLocations(f)
	}
	return r.others[0].All()
}

// besideFile is a file beside the workflow, with its problems.
type besideFile struct {
	name string
	*definition.Reporter
}

// readBeside reads a file below the root. The result is empty if the file does not exist.
func (r *reader) readBeside(name string) (f Beside) {
	if r.Files == nil {
		return f
	}
	text, err := definition.Text(r.Files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.foundProblems = append(r.foundProblems, definition.Problem{File: name, Line: 1, Column: 1,
			Severity: definition.SeverityError, Msg: "cannot be read: " + err.Error()})
	default:
		f = Beside{name, text}
	}
	return f
}

// openBeside parses another file. Its problems are reported with places in that file.
func (r *reader) openBeside(f Beside) textPart {
	raw, said := definition.Read(f.Text)
	if kind := expr.KindOf(raw); raw != nil && kind != expr.KindObject {
		said.Errorf(nil, "must be an object, is %s", kind)
		raw = nil
	}
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	r.others = append(r.others, besideFile{f.Name, said})
	return textPart{&reader{Reporter: said}, nil, raw}
}

// allProblems returns the problems of the workflow, followed by those of other files.
func (r *reader) allProblems() definition.Problems {
	all := append(r.All(), r.foundProblems...)
	for _, o := range r.others {
		all = append(all, o.All().In(o.name)...)
	}
	return all
}
