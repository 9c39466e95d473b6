package orkhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// Outcomes of registering a workflow.
const (
	created   = "created"
	replaced  = "replaced"
	unchanged = "unchanged"
)

// registerWorkflow publishes a workflow under its name. The same workflow from another folder is
// the same version, as long as the first folder exists. strict rejects a workflow that has
// warnings.
func (d *dialect) registerWorkflow(ctx context.Context, p *registration, root string, strict bool) (*registerResult, error) {
	w, problems := d.translateWorkflow(ctx, p.text, root)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	answer := &registerResult{Name: w.Name, Outcome: created}
	f, err := d.Store.FlowBySlug(ctx, w.Name)
	switch {
	case api.Missing(err):
	case err != nil:
		return nil, err
	case p.Replace != nil && !*p.Replace:
		return nil, flow.Errorf(flow.Conflict, "Workflow already exists; pass replace=true to update tasks.")
	default:
		answer.Outcome = replaced
		if w, problems, err = d.sameElsewhere(ctx, f, p.text, root, w, problems); err != nil {
			return nil, err
		}
	}
	publish := persistence.Publication{Slug: w.Name, Definition: w.Definition,
		Now: d.Engine.Now().UnixMilli(), Limits: d.Limits, Secret: d.Secret, Func: d.Func,
		CheckSlug: ork.CheckName}
	ready, also, err := persistence.Prepare(ctx, d.Store, publish)
	if err != nil {
		return nil, err
	}
	problems = append(problems, w.InItsWords(also)...)
	if strict {
		problems = problems.Strict()
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	published, err := persistence.PublishPrepared(ctx, d.Store, publish, ready)
	if err != nil {
		return nil, err
	}
	if !published.Created {
		answer.Outcome = unchanged
	}
	v := published.Version
	answer.ID, answer.SnapshotID, answer.Version = trimID(v.FlowID), trimID(v.ID), v.Number
	answer.Warnings = api.DefinitionProblems(problems)
	return answer, nil
}

// inspecting is the time limit for reading the signatures of one file's functions, which takes as
// long as importing it.
const inspecting = 30 * time.Second

func (d *dialect) translateWorkflow(ctx context.Context, text []byte, root string) (*ork.Workflow, definition.Problems) {
	o := ork.Options{Root: root}
	var err error
	if o.Workers, err = d.workersFile(); err != nil {
		return nil, definition.Problems{{File: ork.WorkersFile, Severity: definition.SeverityError,
			Msg: "cannot be read: " + definition.Reason(err).Error()}}
	}
	if d.Programs != nil {
		if folder, err := os.OpenRoot(cmp.Or(root, ".")); err == nil {
			defer folder.Close()
			o.Files = folder.FS()
		}
		o.Exists = func(path string) bool { return fileIn(path, root) }
		o.Inspect = func(p *flow.Program) (ork.Signatures, error) { return d.inspectProgram(ctx, p) }
	}
	return ork.Translate(text, o)
}

// workersFile returns the operator's current file about workers.
func (d *dialect) workersFile() (f ork.Beside, err error) {
	if d.Workers == "" {
		return f, nil
	}
	f.Name = ork.WorkersFile
	f.Text, err = os.ReadFile(d.Workers)
	return f, err
}

func (d *dialect) inspectProgram(ctx context.Context, p *flow.Program) (s ork.Signatures, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, inspecting, fmt.Errorf("importing it takes longer than %s", inspecting))
	defer cancel()
	said, err := d.Programs.Inspect(ctx, p)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(said, &s)
}

// fileIn reports whether a file below a root exists. Files elsewhere are never reported, so that a
// caller cannot find out which files the server has.
func fileIn(path, root string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(root); root != "" && (err != nil || !isBelow(path, real)) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// isBelow reports whether a path is the folder or is inside the folder.
func isBelow(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// sameElsewhere returns the workflow with the root of its newest version, if that makes the
// workflow equal to that version.
func (d *dialect) sameElsewhere(ctx context.Context, f *persistence.Flow, text []byte, here string,
	w *ork.Workflow, problems definition.Problems) (*ork.Workflow, definition.Problems, error) {
	v, err := d.Store.FindVersion(ctx, f.ID, 0)
	if api.Missing(err) {
		return w, problems, nil
	} else if err != nil {
		return nil, nil, err
	}
	root, has := rootIn(v.Definition)
	// the root of a model is a folder below the workflow's
	if now, _ := rootIn(w.Definition); strings.HasPrefix(now, here) {
		root = strings.TrimSuffix(root, now[len(here):])
	}
	if d.Programs == nil {
		return w, problems, nil
	}
	if info, err := os.Stat(root); !has || err != nil || !info.IsDir() {
		return w, problems, nil
	}
	if old, also := d.translateWorkflow(ctx, text, root); old != nil && string(old.Definition) == string(v.Definition) {
		return old, also, nil
	}
	return w, problems, nil
}

// rootIn returns the root of the first program of a definition.
func rootIn(definition []byte) (string, bool) {
	nodes, _ := expr.Field(definition, "nodes")
	members, _ := expr.Members(nodes)
	for _, m := range members {
		exec, _ := expr.Field(m.Value, "exec")
		raw, _ := expr.Field(exec, "root")
		return expr.String(raw)
	}
	return "", false
}

// rootOf returns the folder of a workflow, which must be inside the server's folder.
func (d *dialect) rootOf(path string) (string, error) {
	// any folder is allowed
	if d.Programs == nil || d.Root == "" && (path == "" || filepath.IsAbs(path)) {
		return path, nil
	}
	base, err := filepath.Abs(d.Root)
	if err != nil {
		return "", err
	}
	if path == "" {
		return base, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return "", flow.Errorf(flow.Invalid, "root: there is no folder %.140q on this server", path)
	}
	if !isBelow(real, base) {
		return "", flow.Errorf(flow.Invalid, "root: the folder %.140q is outside of the server's --script-dir", path)
	}
	return real, nil
}
