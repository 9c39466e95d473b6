package flows

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/internal/cases"
)

// flowLabel is the slug and the name of the flow in a file. An unknown part is "".
type flowLabel struct{ file, slug, name string }

// labelOf returns the label of the flow in a file. False means that the file has no flow.
func labelOf(file string, text []byte) (flowLabel, bool) {
	s := definitionSource{file, text}
	if cases.IsCases(file) || s.isBesideOrk() {
		return flowLabel{}, false
	}
	label := flowLabel{file: filepath.Clean(file), slug: s.flowSlug()}
	if ork.Is(text) {
		if label.name = ork.NameOf(text); label.name != "" {
			label.slug = SlugOf(label.name + ".yaml")
		}
		return label, true
	}
	if d, _ := definition.Parse(text); d != nil {
		label.name = d.Name
	}
	return label, true
}

// fileProblems holds problems by file.
type fileProblems map[string]definition.Problems

// problemsOf returns the problems of a file; with strict, warnings become errors.
func (p fileProblems) problemsOf(file string, strict bool) definition.Problems {
	problems := p[filepath.Clean(file)]
	if strict {
		problems = problems.Strict()
	}
	return problems
}

// compareLabels reports files that would be published as the same flow, and flows of the same name
// in several files.
func compareLabels(labels []flowLabel) fileProblems {
	slugs, names := map[string][]string{}, map[string][]string{}
	add := func(files map[string][]string, key, file string) {
		if key != "" && !slices.Contains(files[key], file) {
			files[key] = append(files[key], file)
		}
	}
	byFile := func(a, b flowLabel) int { return strings.Compare(a.file, b.file) }
	for _, l := range slices.SortedFunc(slices.Values(labels), byFile) {
		add(slugs, l.slug, l.file)
		add(names, l.name, l.file)
	}
	problems := fileProblems{}
	for slug, files := range slugs {
		problems.addToFiles(files, definition.Problem{Severity: definition.SeverityError},
			func(others string) string {
				return fmt.Sprintf("has the same slug %s as %s: rename one of the files", slug, others)
			})
	}
	for _, files := range names {
		problems.addToFiles(files, definition.Problem{Severity: definition.SeverityWarning, Path: "name"},
			func(others string) string { return "is also the name of the flow in " + others })
	}
	return problems
}

// addToFiles adds a problem to each of several files, with a text that names the others. A file
// that already has an error keeps only this error.
func (p fileProblems) addToFiles(files []string, problem definition.Problem, text func(others string) string) {
	if len(files) == 1 {
		return
	}
	for _, file := range files {
		if p[file] != nil {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(files), func(other string) bool { return other == file })
		problem.Msg = text(strings.Join(others, ", "))
		p[file] = definition.Problems{problem}
	}
}
