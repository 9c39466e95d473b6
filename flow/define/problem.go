package define

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Severity reports whether a Problem keeps a definition from being used.
type Severity string

// A definition with an error is refused; a warning says that something may not be what was meant, a
// note that something could not be checked where this was done, or does what may surprise.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// Problem is something wrong with a definition, and where: a path such as nodes.a.max_retries, and
// the line and column, from 1, if the definition was read from a text (else 0). A File is another
// one than that of the definition, which brings it in: all of the place is in that.
type Problem struct {
	File     string   `json:"file,omitempty"`
	Path     string   `json:"path"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Severity Severity `json:"severity"`
	Msg      string   `json:"msg"`
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

// Problems are all that is known to be wrong with a definition, in the order of its text.
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

// Err is nil if there is no error among them.
func (p Problems) Err() error {
	for _, problem := range p {
		if problem.Severity == SeverityError {
			return p
		}
	}
	return nil
}

// Strict are the problems with every warning as an error, for those who want a definition without
// any.
func (p Problems) Strict() Problems {
	strict := slices.Clone(p)
	for i := range strict {
		if strict[i].Severity == SeverityWarning {
			strict[i].Severity = SeverityError
		}
	}
	return strict
}

// As makes problems an Error of the kind Invalid for those who ask with errors.As.
func (p Problems) As(target any) bool {
	e, ok := target.(**flow.Error)
	if ok {
		*e = &flow.Error{Kind: flow.Invalid, Msg: p.Error()}
	}
	return ok
}

// sortByPlace orders problems by where they are, in the text if there is one.
func (p Problems) sortByPlace() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
}

// maxProblems is how many errors, how many warnings and how many notes are told about one
// definition.
const maxProblems = 200

// Reporter collects problems. Its zero value collects those of a definition without a text.
type Reporter struct {
	root         textValue // what the definition was read from, or nil
	problems     Problems
	paths        map[string]bool // with an error, and characters of texts
	counts       map[Severity]int
	writtenPaths map[string]string // paths as they are in the text, by those of fields that have other names there
}

// renamePath has problems at a place told with its path in the text.
func (r *Reporter) renamePath(at, written *Place) {
	if r.writtenPaths == nil {
		r.writtenPaths = map[string]string{}
	}
	r.writtenPaths[at.String()] = written.String()
}

// asWritten returns the path of a place as it is in the text.
func (r *Reporter) asWritten(path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if written, ok := r.writtenPaths[path[:end]]; ok {
			return written + path[end:]
		}
	}
	return path
}

// addProblem reports a problem at a place. What is told after an error at the same place follows
// from it.
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
	if at != nil && at.character > 0 { // there may be several in a text
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

// addSyntaxError reports a mistake that is in the text, at no place of the definition. Others may
// follow.
func (r *Reporter) addSyntaxError(where textPosition, msg string) {
	if r.paths == nil {
		r.paths, r.counts = map[string]bool{}, map[Severity]int{}
	}
	r.counts[SeverityError]++
	line, column := where.lineColumn()
	r.problems = append(r.problems, Problem{Line: line, Column: column, Severity: SeverityError, Msg: msg})
}

// Mute lets nothing more be told about a place: what is wrong there follows from what was told.
func (r *Reporter) Mute(at *Place) {
	if r.paths == nil {
		r.paths, r.counts = map[string]bool{}, map[Severity]int{}
	}
	r.paths[at.String()] = true
}

// Errorf reports an error at a place, whose position it looks up.
func (r *Reporter) Errorf(at *Place, format string, args ...any) {
	r.addProblem(SeverityError, at, r.locatePosition(SeverityError, at), format, args...)
}

// Warnf reports a warning at a place, whose position it looks up.
func (r *Reporter) Warnf(at *Place, format string, args ...any) {
	r.addProblem(SeverityWarning, at, r.locatePosition(SeverityWarning, at), format, args...)
}

// Notef reports a note at a place, whose position it looks up.
func (r *Reporter) Notef(at *Place, format string, args ...any) {
	r.addProblem(SeverityNote, at, r.locatePosition(SeverityNote, at), format, args...)
}

// locatePosition finds a place in the text, unless the problem would not be told anyway.
func (r *Reporter) locatePosition(severity Severity, at *Place) textPosition {
	if r.root == nil || r.counts[severity] >= maxProblems {
		return textPosition{}
	}
	return locatePlace(r.root, at)
}

// Position is the line and column of a place in the text, from 1, or of what should hold it; 0 when
// there is no text.
func (r *Reporter) Position(at *Place) (line, column int) {
	if r.root == nil {
		return 0, 0
	}
	return locatePlace(r.root, at).lineColumn()
}

// All are the problems collected, in order; of too many the number of those left out is told.
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

// Reporter goes on from what is known of the text that the definition was read from, without
// changing it.
func (d *Definition) Reporter() *Reporter {
	r := d.source
	if r == nil {
		return &Reporter{}
	}
	return &Reporter{r.root, slices.Clone(r.problems), maps.Clone(r.paths), maps.Clone(r.counts), r.writtenPaths}
}
