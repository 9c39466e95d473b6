package ork

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Files that stand beside workflows, and say things that hold for all of them.
const (
	SettingsFile  = "ork.yaml"
	WorkersFile   = "workers.yaml"
	LocationsFile = "locations.yaml"
)

// Beside is a file that stands beside workflows.
type Beside struct {
	Name string // by which it is told; "" = there is none
	Text []byte
}

// IsBeside reports whether a file is one of those that stand beside workflows: by its name, if it
// has no tasks or nodes.
func IsBeside(name string, text []byte) bool {
	if !slices.Contains([]string{SettingsFile, WorkersFile, LocationsFile}, name) {
		return false
	}
	raw, _ := define.Read(text)
	for _, field := range []string{"tasks", "nodes", "start", "job_name", "import"} {
		if _, has := expr.Field(raw, field); has {
			return false
		}
	}
	return true
}

// CheckBeside tells everything that is wrong with a file that stands beside workflows.
func CheckBeside(f Beside) define.Problems {
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

// besideFile is a file beside the workflow.
type besideFile struct {
	name string
	*define.Reporter
}

// readBeside reads a file below the root; one that is not there has no text.
func (r *reader) readBeside(name string) (f Beside) {
	if r.Files == nil {
		return f
	}
	text, err := define.Text(r.Files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.foundProblems = append(r.foundProblems, define.Problem{File: name, Line: 1, Column: 1, Severity: define.SeverityError, Msg: "cannot be read: " + err.Error()})
	default:
		f = Beside{name, text}
	}
	return f
}

// openBeside is what another file says. What is wrong with it is told with that file's own places.
func (r *reader) openBeside(f Beside) textPart {
	raw, said := define.Read(f.Text)
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

// allProblems are those of the workflow, and behind them those of other files.
func (r *reader) allProblems() define.Problems {
	all := append(r.All(), r.foundProblems...)
	for _, o := range r.others {
		all = append(all, o.All().In(o.name)...)
	}
	return all
}
