package dbt

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// File is the name of the configuration file of every dbt project.
const File = "dbt_project.yml"

// Project is a dbt project.
type Project struct {
	Models []*Model // in order of their paths
	Parsed bool     // read from the manifest of dbt

	nodes map[string]*buildNode // everything that dbt builds, by the name that references use
}

// Model is a model of the project, without the models of its packages.
type Model struct {
	Name string // the name for dbt's selection of models
	Path string // folders and name, separated by dots: marts.core.dim_customers
	File string
	node *buildNode
}

// buildNode is anything that dbt builds: a seed, a snapshot, or a model of the project or of a
// package.
type buildNode struct {
	model *Model // nil if it is not a model of the project
	needs []string
}

// Read reads the project in a folder. It returns nil without problems if the folder has no project.
func Read(files fs.FS, folder string) (*Project, definition.Problems) {
	r := &reader{files: files, folder: folder}
	l, found := r.readLayout()
	if !found {
		return nil, r.problems
	}
	p := r.readManifest(l)
	if p == nil {
		p = r.scanFiles(l)
	}
	slices.SortFunc(p.Models, func(a, b *Model) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.File, b.File)) })
	return p, r.problems
}

func (p *Project) addNode(key string, m *Model, needs []string) *buildNode {
	n := &buildNode{model: m, needs: needs}
	p.nodes[key] = n
	if m != nil {
		m.node = n
		p.Models = append(p.Models, m)
	}
	return n
}

// Select returns the models that match the patterns, or all models without patterns. It also
// returns the indexes of patterns that match nothing. A pattern is a folder followed by .*, or a
// model by its path or its name; a * within a name matches any part of it.
func (p *Project) Select(patterns []string) (chosen []*Model, none []int) {
	if len(patterns) == 0 {
		return p.Models, nil
	}
	named := make([]bool, len(patterns))
	for _, m := range p.Models {
		isChosen := false
		for i, pattern := range patterns {
			if m.matchesPattern(pattern) {
				named[i], isChosen = true, true
			}
		}
		if isChosen {
			chosen = append(chosen, m)
		}
	}
	for i, found := range named {
		if !found {
			none = append(none, i)
		}
	}
	return chosen, none
}

// matchesPattern reports whether a pattern matches the model.
func (m *Model) matchesPattern(pattern string) bool {
	wanted, parts := strings.Split(pattern, "."), strings.Split(m.Path, ".")
	last := len(wanted) - 1
	switch {
	case wanted[last] == "*" && len(parts) > last:
		return matchParts(wanted[:last], parts[:last])
	case last == 0:
		return matchParts(wanted, parts[len(parts)-1:])
	}
	return matchParts(wanted, parts)
}

func matchParts(wanted, parts []string) bool {
	return slices.EqualFunc(wanted, parts, func(pattern, part string) bool {
		same, err := path.Match(pattern, part)
		return same && err == nil
	})
}

// Before returns the chosen models that must be built before m, directly or through other models.
// In a cycle, m itself is among them.
func (p *Project) Before(m *Model, chosen func(*Model) bool) (before []*Model) {
	seen := map[*buildNode]bool{}
	var visit func(keys []string)
	visit = func(keys []string) {
		for _, key := range keys {
			n := p.nodes[key]
			switch {
			case n == nil || seen[n]:
				continue
			case n.model != nil && chosen(n.model):
				before = append(before, n.model)
			default:
				visit(n.needs)
			}
			seen[n] = true
		}
	}
	visit(m.node.needs)
	return before
}

// projectLayout holds a project's name and the folders of its models, seeds, snapshots and results.
type projectLayout struct {
	name                     string // name of the project; "" if only dbt knows the name
	models, seeds, snapshots []string
	target                   string
}

func (r *reader) readLayout() (l projectLayout, found bool) {
	text, found := r.readText(File)
	if !found {
		return l, false
	}
	raw, said := definition.Read(text)
	name, _ := expr.Field(raw, "name")
	if l.name, _ = expr.String(name); strings.Contains(l.name, "{{") {
		l.name = ""
	}
	target, _ := expr.Field(raw, "target-path")
	l.target, _ = expr.String(target)
	if l.target = path.Clean(cmp.Or(l.target, "target")); !fs.ValidPath(l.target) {
		said.Errorf(definition.At("target-path"), "leads out of the project: name a folder inside of it")
		l.target = "target"
	}
	l.models, l.seeds, l.snapshots = readFolders(raw, said, "model-paths", "models"),
		readFolders(raw, said, "seed-paths", "seeds"), readFolders(raw, said, "snapshot-paths", "snapshots")
	r.problems = append(r.problems, said.All().In(path.Join(r.folder, File))...)
	return l, raw != nil
}

// readFolders returns the folders that a field names, or the given default folder.
func readFolders(raw []byte, said *definition.Reporter, field, otherwise string) (list []string) {
	named, has := expr.Field(raw, field)
	if !has {
		return []string{otherwise}
	}
	elements, _ := expr.Elements(named)
	for i, e := range elements {
		folder, isText := expr.String(e)
		if folder = path.Clean(folder); !isText || !fs.ValidPath(folder) {
			said.Errorf(definition.At(field).Index(i), "must be a folder inside of the project")
			continue
		}
		list = append(list, folder)
	}
	return list
}
