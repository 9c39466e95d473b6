package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// File is a file of cases with the flow they test.
type File struct {
	Path  string
	Flow  string // path of the flow
	Plan  *flow.Plan
	Cases []*Case
}

// Mistakes are mistakes in several files.
type Mistakes []Mistake

// Mistake is a mistake in a file.
type Mistake struct {
	File string
	definition.Problem
}

func (m Mistakes) Error() string {
	texts := make([]string, len(m))
	for i, one := range m {
		texts[i] = one.File + ":" + one.Problem.String()
	}
	return strings.Join(texts, "\n")
}

// fileEndings are the endings of files with definitions or cases.
var fileEndings = []string{".yaml", ".yml", ".json"}

// casesSuffix is the end of a case file's name, before the ending.
const casesSuffix = ".test"

// IsCases reports whether a path names a case file.
func IsCases(path string) bool {
	stem, ok := stemOf(path)
	return ok && strings.HasSuffix(stem, casesSuffix)
}

// stemOf returns a path without its ending.
func stemOf(path string) (stem string, ok bool) {
	for _, ending := range fileEndings {
		if stem, ok := strings.CutSuffix(path, ending); ok {
			return stem, true
		}
	}
	return path, false
}

// Beside returns the case file beside a flow: order.test.yaml beside order.yaml.
func Beside(path string) (string, error) {
	stem, _ := stemOf(path)
	for _, ending := range fileEndings {
		if _, err := os.Stat(stem + casesSuffix + ending); err == nil {
			return stem + casesSuffix + ending, nil
		}
	}
	return "", fmt.Errorf("%s has no cases beside it: write them into %s%s.yaml, or name the file with --tests", path, stem, casesSuffix)
}

// In returns all case files in and below a folder.
func In(folder string) (all []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && IsCases(path) {
			all = append(all, path)
		}
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no cases in it: their files end with %s.yaml, as order%s.yaml does", folder, casesSuffix, casesSuffix)
	}
	return all, err
}

// Open reads a case file and its flow. The flow is the one named in the file, else the flow in the
// argument of, else the flow beside the file. The error has type Mistakes if a file contains
// mistakes.
func Open(path, of string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	var failed error
	_, cases, problems := Read(text, func(named string) *Names {
		if failed = f.findFlow(named, of); failed != nil {
			return nil
		}
		return NamesOf(f.Plan)
	})
	if len(problems) > 0 {
		return nil, toMistakes(path, problems)
	}
	if failed != nil {
		return nil, failed
	}
	f.Cases = cases
	return f, nil
}

// findFlow reads the flow.
func (f *File) findFlow(named, of string) error {
	stem, _ := stemOf(f.Path)
	switch {
	case named != "":
		if f.Flow = named; !filepath.IsAbs(named) {
			f.Flow = filepath.Join(filepath.Dir(f.Path), named)
		}
	case of != "":
		f.Flow = of
	default:
		stem = strings.TrimSuffix(stem, casesSuffix)
		for _, ending := range fileEndings {
			if _, err := os.Stat(stem + ending); err == nil && stem+ending != f.Path {
				f.Flow = stem + ending
				break
			}
		}
		if f.Flow == "" {
			return fmt.Errorf("%s: there is no flow %s.yaml beside it: name it in the file with flow: PATH", f.Path, stem)
		}
	}
	plan, problems, err := Load(f.Flow)
	switch {
	case err != nil:
		return fmt.Errorf("%s: the flow of the cases: %w", f.Path, err)
	case plan == nil:
		return toMistakes(f.Flow, problems)
	}
	f.Plan = plan
	return nil
}

// Load compiles the definition in a file.
func Load(path string) (*flow.Plan, definition.Problems, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	return Compile(text, filepath.Dir(path))
}

// Compile compiles a definition. Embedded flows are looked up by name in the folder.
func Compile(text []byte, folder string) (*flow.Plan, definition.Problems, error) {
	d, err := definition.Parse(text)
	if d == nil {
		return nil, err.(definition.Problems), nil
	}
	embedding := definition.Embedding{Lookup: func(name string) ([]byte, error) { return lookupFlow(folder, name) }}
	if _, err := embedding.Embed(d, []byte("{}")); err != nil {
		return nil, nil, err
	}
	plan, problems := compile.Definition(d, flow.Limits{})
	return plan, problems, nil
}

// lookupFlow returns the definition of a flow in a folder as JSON; nil if there is none.
func lookupFlow(folder, name string) ([]byte, error) {
	if folder == "" || name != filepath.Base(name) {
		return nil, nil
	}
	for _, ending := range fileEndings {
		text, err := os.ReadFile(filepath.Join(folder, name+ending))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case ending == ".json":
			return text, nil
		}
		return definition.YAMLToJSON(text)
	}
	return nil, nil
}

func toMistakes(path string, problems definition.Problems) (all Mistakes) {
	for _, p := range problems {
		all = append(all, Mistake{path, p})
	}
	return all
}
