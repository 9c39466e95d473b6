package ork

import (
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/dialect/ork/dbt"
	"github.com/troupe-engine/troupe/flow/expr"
)

// dbtProject is an imported dbt project.
type dbtProject struct {
	*dbt.Project
	folder string
	models map[*dbt.Model]*dbtModel // the selected models
}

// dbtModel is a model of a project, which becomes a task.
type dbtModel struct {
	*dbt.Model
	project *dbtProject
	task    string
	at      *definition.Place // place of the import
}

// The dbt executors. dbtRun executes models.
const (
	dbtRun      = "dbt"
	dbtTest     = "dbt-test"
	dbtSeed     = "dbt-seed"
	dbtSnapshot = "dbt-snapshot"
)

// dbtCommand is a dbt subcommand, and the option that selects its nodes.
type dbtCommand struct{ does, chosen string }

var dbtCommands = map[string]dbtCommand{dbtRun: {"run", "models"}, dbtTest: {"test", "models"},
	dbtSeed: {"seed", "select"}, dbtSnapshot: {"snapshot", "select"}}

// readImports reads the projects whose models become tasks.
func (r *reader) readImports(p textPart) {
	all, _ := p.getKind("import", expr.KindArray)
	elements, _ := expr.Elements(all)
	r.byModel = map[string]*dbtModel{}
	for i, e := range elements {
		one := textPart{r, definition.At("import").Index(i), e}
		if kind := expr.KindOf(e); kind != expr.KindObject {
			r.Errorf(one.at, "must be an object such as {dbt: ./transform, models: [staging.*]}, is %s", kind)
			continue
		}
		one.refuseUnknown("dbt", "models")
		if project := one.readProject(); project != nil {
			one.addModels(project)
		}
	}
}

// readProject reads the project that an import names.
func (p textPart) readProject() *dbtProject {
	at, named := p.at.Key("dbt"), p.getText("dbt")
	folder, inside := inRoot(named)
	_, written := p.getField("dbt")
	switch {
	case named == "":
		if !written {
			p.Errorf(p.at, "names no project: write dbt: and its folder, from that of the workflow")
		}
		return nil
	case p.Files == nil:
		p.Errorf(at, "projects are not read here: publish the workflow from a file, or on a server that starts programs (--allow-scripts)")
		return nil
	case !inside:
		p.Errorf(at, "must be inside of the folder that the workflow's tasks run in, and named from there")
		return nil
	}
	for _, known := range p.projects {
		if known.folder == folder {
			return known
		}
	}
	read, problems := dbt.Read(p.Files, folder)
	p.foundProblems = append(p.foundProblems, problems...)
	if read == nil && len(problems) == 0 {
		p.Errorf(at, "there is no %s: name the folder of a project of dbt, from that of the workflow", path.Join(folder, dbt.File))
	}
	if read == nil {
		return nil
	}
	found := &dbtProject{read, folder, map[*dbt.Model]*dbtModel{}}
	p.projects = append(p.projects, found)
	return found
}

// inRoot returns a path in its shortest form, and whether it stays inside the root.
func inRoot(name string) (clean string, inside bool) {
	clean = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	return clean, fs.ValidPath(clean)
}

// addModels adds tasks for the selected models of a project.
func (p textPart) addModels(from *dbtProject) {
	patterns := p.getTexts("models")
	chosen, none := from.Select(patterns)
	for _, i := range none {
		hint := ""
		if from.Parsed {
			hint = "; they are those of " + path.Join(from.folder, dbt.Manifest) + ", which dbt parse writes anew"
		}
		p.Errorf(p.at.Key("models").Index(i), "%.140q is no model, and no folder with models%s%s", patterns[i],
			definition.Guess{Word: strings.TrimSuffix(patterns[i], ".*"), Names: from.selectableNames}, hint)
	}
	for _, m := range chosen {
		made := &dbtModel{m, from, "dbt." + m.Path, p.at.Key("dbt")}
		if other := p.byModel[made.task]; other != nil {
			p.Errorf(made.at, "its model %s is imported already, from %s: choose other models", m.Path, other.project.folder)
			return
		}
		from.models[m] = made
		p.models = append(p.models, made)
		p.byModel[made.task] = made
	}
}

// selectableNames returns the names of models and of their folders.
func (p *dbtProject) selectableNames() (names []string) {
	for _, m := range p.Models {
		names = append(names, m.Path, m.Name)
		if end := strings.LastIndexByte(m.Path, '.'); end > 0 {
			names = append(names, m.Path[:end])
		}
	}
	return names
}

func (r *reader) modelNames() (names []string) {
	for _, m := range r.models {
		names = append(names, m.task)
	}
	return names
}

// addModelDeps adds the dependencies of the project's models.
func (t *task) addModelDeps() {
	if t.model == nil {
		return
	}
	of := t.model.project
	for _, m := range of.Before(t.model.Model, func(m *dbt.Model) bool { return of.models[m] != nil }) {
		if dep := t.byName[of.models[m].task]; dep != nil && !slices.Contains(t.deps, dep) {
			t.deps = append(t.deps, dep)
		}
	}
}

// readDbt reads a task that dbt executes: a model of a project, or the selection of its config.
func (t *task) readDbt(word string) {
	t.refuseFields(word, "command", "file", "module", "function", "job", "image")
	command := dbtCommands[word]
	if word != dbtRun {
		t.inheritConfig(t.settings.executorConfig(dbtRun))
	}
	config, _ := t.getObject("config")
	if t.model != nil {
		config.refuseUnknown("profiles_dir", "target", "threads")
		t.dir = t.model.project.folder
	} else {
		config.refuseUnknown("project", command.chosen, "profiles_dir", "target", "threads")
		t.dir = config.projectFolder()
	}
	t.command, t.executor = t.dbtLine(command, config), process
}

// projectFolder returns the folder of the project in a config.
func (p textPart) projectFolder() string {
	named := p.getText("project")
	folder, inside := inRoot(named)
	switch {
	case named != "" && !inside:
		p.Errorf(p.at.Key("project"), "must be inside of the folder that the workflow's tasks run in, and named from there")
	case named != "":
		return folder
	case len(p.projects) == 1:
		return p.projects[0].folder
	case len(p.projects) > 1:
		p.Errorf(p.at, "several projects are imported: write config: {project: …} with the folder of one of them")
	}
	return "."
}

// dbtLine returns the program and its arguments.
func (t *task) dbtLine(command dbtCommand, config textPart) json.RawMessage {
	line := []string{"dbt", command.does}
	chosen := config.textOrTexts(command.chosen)
	if t.model != nil {
		chosen = []string{t.model.Name}
	}
	if len(chosen) > 0 {
		line = append(append(line, "--"+command.chosen), chosen...)
	}
	if dir := config.profilesDir(); dir != "" {
		line = append(line, "--profiles-dir", dir)
	}
	if target := config.getText("target"); target != "" {
		line = append(line, "--target", target)
	}
	if n := config.getCount("threads", 1); n != nil {
		line = append(line, "--threads", string(numberJSON(*n)))
	}
	return listOf(line)
}

// textOrTexts returns a list of texts. A single text becomes a list.
func (p textPart) textOrTexts(name string) []string {
	if v, _ := p.getField(name); expr.KindOf(v) == expr.KindString {
		return []string{p.getText(name)}
	}
	return p.getTexts(name)
}

// profilesDir returns the folder of dbt's profiles. No shell expands ~; dbt itself searches ~/.dbt
// by default.
func (p textPart) profilesDir() string {
	dir := p.getText("profiles_dir")
	switch {
	case strings.TrimSuffix(dir, "/") == "~/.dbt":
		return ""
	case strings.HasPrefix(dir, "~"):
		p.Errorf(p.at.Key("profiles_dir"), "no shell reads ~: write the whole path, or one from the project")
	}
	return dir
}

func listOf(texts []string) json.RawMessage {
	b := json.RawMessage{'['}
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, expr.Quote(text)...)
	}
	return append(b, ']')
}
