package definition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Severity is the severity of a Problem. Only an error prevents the use of a definition.
type Severity string

// Values of Severity. A definition with an error is rejected. A warning means that the definition
// may not do what was intended. A note means that something could not be checked here, or may
// surprise.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// Problem is a problem of a definition with its place. The place is a path such as
// nodes.a.max_retries, with the line and column, from 1, if the definition was read from a text
// (else 0). File is set for an included file; then the place is in that file.
type Problem struct {
	File     string   `json:"file,omitempty"`
	Path     string   `json:"path"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Severity Severity `json:"severity"`
	Msg      string   `json:"message"`
}

func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, "%d:%d: ", p.Line, p.Column)
	case p.File != "":
		b.WriteByte(' ')
	}
	if p.Severity != SeverityError {
		b.WriteString(string(p.Severity) + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// Problems are all known problems of a definition, in the order of its text.
type Problems []Problem

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the definition has %d problems:", len(p))
	for _, problem := range p {
		b.WriteString("\n  " + problem.String())
	}
	return b.String()
}

// Err returns the problems as an error, or nil if none of them is an error.
func (p Problems) Err() error {
	for _, problem := range p {
		if problem.Severity == SeverityError {
			return p
		}
	}
	return nil
}

// Strict returns the problems with every warning raised to an error, for callers that accept no
// warnings.
func (p Problems) Strict() Problems {
	strict := slices.Clone(p)
	for i := range strict {
		if strict[i].Severity == SeverityWarning {
			strict[i].Severity = SeverityError
		}
	}
	return strict
}

// As converts problems to an Error of kind Invalid for errors.As.
func (p Problems) As(target any) bool {
	e, ok := target.(**flow.Error)
	if ok {
		*e = &flow.Error{Kind: flow.Invalid, Msg: p.Error()}
	}
	return ok
}

// sortByPlace sorts problems by their place, in the text if there is one.
func (p Problems) sortByPlace() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
}

// maxProblems is the maximum number of errors, of warnings and of notes reported for one
// definition.
const maxProblems = 200

// Reporter collects problems. Its zero value is for a definition without a text.
type Reporter struct {
	root     textValue // root of the text, or nil
	problems Problems
	paths    map[string]bool // paths and characters that were reported; true for an error
	counts   map[Severity]int
	// path in the text by path in the definition, for fields with other names in the text
	writtenPaths map[string]string
}

// renamePath makes problems at a place show its path in the text.
func (r *Reporter) renamePath(at, written *Place) {
	if r.writtenPaths == nil {
		r.writtenPaths = map[string]string{}
	}
	r.writtenPaths[at.String()] = written.String()
}

// asWritten returns the path of a place in the text.
func (r *Reporter) asWritten(path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if written, ok := r.writtenPaths[path[:end]]; ok {
			return written + path[end:]
		}
	}
	return path
}

// addProblem reports a problem at a place. It ignores the problem if the place already has an
// error, because the problem is a consequence of the error.
func (r *Reporter) addProblem(severity Severity, at *Place, where textPosition, format string, args ...any) {
	if r.paths == nil {
		r.paths, r.counts = map[string]bool{}, map[Severity]int{}
	}
	if r.counts[severity] >= maxProblems {
		r.counts[severity]++
		return
	}
	path, msg := at.String(), fmt.Sprintf(format, args...)
	told := path
	if at != nil && at.character > 0 { // a text may have several problems
		told = fmt.Sprintf("%s\n%d", path, at.character)
		if r.root == nil {
			msg = fmt.Sprintf("character %d: %s", at.character, msg)
		}
	}
	if r.paths[path] || r.paths[told] {
		return
	}
	r.paths[told] = severity == SeverityError
	r.counts[severity]++
	line, column := where.lineColumn()
	r.problems = append(r.problems, Problem{Path: path, Line: line, Column: column, Severity: severity, Msg: msg})
}

// addSyntaxError reports an error of the text that belongs to no place of the definition. It never
// suppresses other problems.
func (r *Reporter) addSyntaxError(where textPosition, msg string) {
	if r.paths == nil {
		r.paths, r.counts = map[string]bool{}, map[Severity]int{}
	}
	r.counts[SeverityError]++
	line, column := where.lineColumn()
	r.problems = append(r.problems, Problem{Line: line, Column: column, Severity: SeverityError, Msg: msg})
}

// Mute suppresses further problems at a place, because they are consequences of a reported problem.
func (r *Reporter) Mute(at *Place) {
	if r.paths == nil {
		r.paths, r.counts = map[string]bool{}, map[Severity]int{}
	}
	r.paths[at.String()] = true
}

// Errorf reports an error at a place, and looks up its position.
func (r *Reporter) Errorf(at *Place, format string, args ...any) {
	r.addProblem(SeverityError, at, r.locatePosition(SeverityError, at), format, args...)
}

// Warnf reports a warning at a place, and looks up its position.
func (r *Reporter) Warnf(at *Place, format string, args ...any) {
	r.addProblem(SeverityWarning, at, r.locatePosition(SeverityWarning, at), format, args...)
}

// Notef reports a note at a place, and looks up its position.
func (r *Reporter) Notef(at *Place, format string, args ...any) {
	r.addProblem(SeverityNote, at, r.locatePosition(SeverityNote, at), format, args...)
}

// locatePosition finds a place in the text, unless the problem will not be reported anyway.
func (r *Reporter) locatePosition(severity Severity, at *Place) textPosition {
	if r.root == nil || r.counts[severity] >= maxProblems {
		return textPosition{}
	}
	return locatePlace(r.root, at)
}

// Position returns the line and column, from 1, of a place in the text, or of the value that should
// contain the place. Both are 0 if there is no text.
func (r *Reporter) Position(at *Place) (line, column int) {
	if r.root == nil {
		return 0, 0
	}
	return locatePlace(r.root, at).lineColumn()
}

// All returns the collected problems in order. If there are too many, it adds the number of omitted
// problems.
func (r *Reporter) All() Problems {
	all := slices.Clone(r.problems)
	if r.writtenPaths != nil {
		for i := range all {
			all[i].Path = r.asWritten(all[i].Path)
		}
	}
	all.sortByPlace()
	for _, severity := range []Severity{SeverityError, SeverityWarning, SeverityNote} {
		if more := r.counts[severity] - maxProblems; more > 0 {
			all = append(all, Problem{Severity: severity, Msg: fmt.Sprintf("there are %d more of severity %s", more, severity)})
		}
	}
	return all
}

// Reporter returns a new Reporter with the problems found while reading the definition. The
// original does not change.
func (d *Definition) Reporter() *Reporter {
	r := d.source
	if r == nil {
		return &Reporter{}
	}
	return &Reporter{r.root, slices.Clone(r.problems), maps.Clone(r.paths), maps.Clone(r.counts), r.writtenPaths}
}
