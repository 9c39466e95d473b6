package dbt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
)

// reader reads one project.
type reader struct {
	files    fs.FS
	folder   string
	read     int // bytes of models read so far
	problems definition.Problems
}

// maxProblems is the maximum number of reported problems of a project.
const maxProblems = 200

// reportError reports an error at a place in a file.
func (r *reader) reportError(file string, line, column int, format string, args ...any) {
	switch {
	case len(r.problems) == maxProblems:
		format, args = "there are more problems, from here on", nil
	case len(r.problems) > maxProblems:
		return
	}
	r.problems = append(r.problems, definition.Problem{File: file, Line: line, Column: column,
		Severity: definition.SeverityError, Msg: fmt.Sprintf(format, args...)})
}

// readText returns the text of a file of the project, if it exists and is readable.
func (r *reader) readText(name string) (text []byte, found bool) {
	name = path.Join(r.folder, name)
	text, err := definition.Text(r.files, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.reportError(name, 1, 1, "cannot be read: %s", err)
	}
	return text, err == nil
}

// maxRead is the maximum number of bytes of models that are read in a project.
const maxRead = 256 << 20

// sourceFile is a text with references.
type sourceFile struct {
	file   string // path in the project
	builds []*buildNode
	refs   []modelRef
}

// scanFiles builds the graph from the files.
func (r *reader) scanFiles(l projectLayout) *Project {
	p := &Project{nodes: map[string]*buildNode{}}
	r.eachFile(l.seeds, func(file string) {
		if path.Ext(file) == ".csv" {
			p.addNode(nameOf(file), nil, nil)
		}
	})
	var sources []sourceFile
	r.eachFile(l.snapshots, func(file string) {
		if path.Ext(file) == ".sql" {
			sources = append(sources, r.addSnapshots(p, file))
		}
	})
	for _, folder := range l.models {
		r.eachFile([]string{folder}, func(file string) {
			if s := r.addModel(p, folder, file); s != nil {
				sources = append(sources, *s)
			}
		})
	}
	for _, s := range sources {
		r.connectRefs(p, l, s)
	}
	return p
}

// eachFile calls f with each file in some folders. A folder that does not exist has no files.
func (r *reader) eachFile(folders []string, f func(file string)) {
	for _, folder := range folders {
		begin := path.Join(r.folder, folder)
		err := fs.WalkDir(r.files, begin, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil && name == begin && errors.Is(err, fs.ErrNotExist):
				return fs.SkipDir
			case err != nil:
				return err
			case !d.IsDir():
				f(strings.TrimPrefix(name, path.Clean(r.folder)+"/"))
			}
			return nil
		})
		if err != nil {
			r.reportError(begin, 1, 1, "cannot be read: %s", definition.Reason(err))
		}
	}
}

// addModel adds a model. It returns nil if there is no source to read.
func (r *reader) addModel(p *Project, folder, file string) *sourceFile {
	at := path.Join(r.folder, file)
	switch path.Ext(file) {
	case ".sql":
	case ".py":
		r.reportError(at, 1, 1, "is a model in Python, whose references are not read: have dbt "+
			"parse write %s, which says what it needs", Manifest)
		return nil
	default:
		return nil
	}
	m := &Model{Name: nameOf(file), Path: dottedPath(strings.TrimPrefix(file, folder+"/")), File: file}
	if other := p.nodes[m.Name]; other != nil && other.model != nil {
		r.reportError(at, 1, 1, "has the name of the model %s: give one of them another, which dbt wants, too", other.model.File)
		return nil
	}
	return &sourceFile{file, []*buildNode{p.addNode(m.Name, m, nil)}, r.readRefs(file).refs}
}

// addSnapshots adds the snapshots that a file defines.
func (r *reader) addSnapshots(p *Project, file string) sourceFile {
	found := r.readRefs(file)
	s := sourceFile{file: file, refs: found.refs}
	for _, name := range found.snapshots {
		s.builds = append(s.builds, p.addNode(name, nil, nil))
	}
	return s
}

// readRefs returns the references in a file, and reports its faults.
func (r *reader) readRefs(file string) scanResult {
	at := path.Join(r.folder, file)
	if r.read > maxRead {
		return scanResult{}
	}
	text, _ := r.readText(file)
	if r.read += len(text); r.read > maxRead {
		r.reportError(at, 1, 1, "is where more than %d bytes of models were read: have dbt parse write %s", maxRead, Manifest)
	}
	found := findRefs(string(text))
	for _, f := range found.faults {
		r.reportError(at, f.line, f.column, "%s", f.msg)
	}
	return found
}

// connectRefs turns references into dependencies.
func (r *reader) connectRefs(p *Project, l projectLayout, s sourceFile) {
	var needs []string
	for _, ref := range s.refs {
		switch {
		// a model of a package, which is not a model of the project
		case ref.project != "" && l.name != "" && ref.project != l.name:
		case p.nodes[ref.name] == nil:
			names := func() []string { return slices.Sorted(maps.Keys(p.nodes)) }
			r.reportError(path.Join(r.folder, s.file), ref.line, ref.column,
				"there is no model, seed or snapshot %.140s%s; if it is one of a package, have "+
					"dbt parse write %s",
				ref.name, definition.Guess{Word: ref.name, Names: names}, Manifest)
		default:
			needs = append(needs, ref.name)
		}
	}
	for _, n := range s.builds {
		n.needs = needs
	}
}
