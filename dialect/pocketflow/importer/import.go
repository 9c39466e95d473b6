package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Options configures an import. The zero value is useful.
type Options struct {
	// Cluster is the name of the cluster to which a PostgreSQL store belongs or will belong; ""
	// means troupe.
	Cluster string
	// DryRun reads only the file, and reports what would be imported into an empty store.
	DryRun bool
	Limits flow.Limits
	// Lacks is called for each item that is not imported. A nil Lacks is ignored.
	Lacks func(Lack)
}

// Lack is an item that is not imported.
type Lack struct {
	What string `json:"what"` // flow, version or task; "task" also for a task without its runs
	ID   string `json:"id"`
	Why  string `json:"why"`
}

// Count is the number of items of one kind.
type Count struct {
	Taken   int `json:"taken"`
	There   int `json:"there"`   // items that were imported before
	Missing int `json:"missing"` // items that are not imported
}

// Report is the result of an import.
type Report struct {
	Flows, Versions, Tasks, Runs Count
	Unfinished                   int // number of unfinished tasks among the imported tasks
	// end time of the imported task that ended first, in milliseconds; 0 if no task has ended
	Oldest int64
}

// Import imports a file into a store that no member serves; a dry run needs no store. The Report
// covers everything done before an error.
func Import(ctx context.Context, f *File, store persistence.Store, o Options) (*Report, error) {
	i := &flowImporter{file: f, store: store, o: o, report: &Report{}, knownFlows: map[string]bool{}}
	if i.o.Lacks == nil {
		i.o.Lacks = func(Lack) {}
	}
	if o.DryRun {
		return i.report, i.importAll(ctx)
	}
	if err := i.joinStore(ctx); err != nil {
		return i.report, err
	}
	err := i.importAll(ctx)
	return i.report, errors.Join(err, store.Leave(context.WithoutCancel(ctx), i.me))
}

type flowImporter struct {
	file       *File
	store      persistence.Store
	o          Options
	report     *Report
	me         string          // incarnation of the importer, which writes
	now        int64           // time by the store's clock
	knownFlows map[string]bool // flows that exist in the store
	batch      taskBatch
}

// lease is the time after which an import is considered dead. The lease is renewed with each
// version and each batch.
const lease = time.Minute

// joinStore joins the store and makes sure that no other member is active.
func (i *flowImporter) joinStore(ctx context.Context) error {
	c, err := i.store.Cluster(ctx)
	if err != nil {
		return err
	}
	for _, m := range c.Members {
		if m.FencedAt == 0 && !m.Over(c.Now) && !i.store.Locked() {
			return fmt.Errorf("%w: member %s serves it; stop all members, and start them again "+
				"when the import is done", persistence.ErrTaken, m.Name)
		}
	}
	name := cmp.Or(i.o.Cluster, "troupe")
	if i.store.Locked() {
		name = "" // a single member has no cluster
	}
	values, err := i.store.ValuesAt(ctx)
	if err != nil {
		return err
	}
	if i.me, err = i.store.Join(ctx, persistence.Joining{Name: "import", Cluster: name,
		Format: flow.Format, Values: values, TTL: lease}); err != nil {
		return err
	}
	return i.renewLease(ctx)
}

func (i *flowImporter) renewLease(ctx context.Context) error {
	if i.o.DryRun {
		return nil
	}
	pulse, err := i.store.Renew(ctx, i.me, lease)
	i.now = pulse.Now.UnixMilli()
	return err
}

func (i *flowImporter) reportMissing(what, id, why string) { i.o.Lacks(Lack{what, id, why}) }

func (i *flowImporter) importAll(ctx context.Context) error {
	flows, err := i.file.readFlows(ctx)
	if err != nil {
		return fmt.Errorf("read flows: %w", err)
	}
	for _, f := range flows {
		if err := i.importFlow(ctx, f); err != nil {
			return fmt.Errorf("take the flow %s: %w", f.ID, err)
		}
	}
	versions, err := i.file.readVersions(ctx)
	if err != nil {
		return fmt.Errorf("read versions: %w", err)
	}
	for _, v := range versions {
		if err := i.importVersion(ctx, v); err != nil {
			return fmt.Errorf("take the version %s: %w", v.ID, err)
		}
	}
	return i.refuseOrphans(ctx)
}

// isStored reports whether the store has an item already.
func isStored[T any](i *flowImporter, ctx context.Context, id string,
	read func(persistence.Store, context.Context, string) (*T, error)) (bool, error) {
	if i.o.DryRun {
		return false, nil
	}
	_, err := read(i.store, ctx, id)
	if errors.Is(err, persistence.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// noFlows is a source without flows, because a scheduler's definitions do not name other flows.
type noFlows struct{ persistence.Flows }

func (noFlows) FlowBySlug(context.Context, string) (*persistence.Flow, error) {
	return nil, persistence.ErrNotFound
}

func (i *flowImporter) importFlow(ctx context.Context, f persistence.Flow) error {
	there, err := isStored(i, ctx, f.ID, persistence.Store.Flow)
	switch {
	case err != nil:
		return err
	case there:
		i.report.Flows.There++
	case !flow.IsText(f.ID) || f.ID == "" || f.Check() != nil:
		i.report.Flows.Missing++
		i.reportMissing("flow", f.ID, fmt.Sprintf("its id or name cannot be kept: %v", f.Check()))
		return nil
	default:
		if !i.o.DryRun {
			if err := i.store.CreateFlow(ctx, f); err != nil {
				return err
			}
		}
		i.report.Flows.Taken++
	}
	i.knownFlows[f.ID] = true
	return nil
}

// importVersion imports a version with its tasks.
func (i *flowImporter) importVersion(ctx context.Context, v persistence.Version) error {
	text, err := i.file.readDefinition(ctx, v.ID)
	if err != nil {
		return err
	}
	ready, why, err := i.prepareVersion(ctx, v, text)
	if err != nil {
		return err
	}
	rows := i.file.tasks[v.ID]
	delete(i.file.tasks, v.ID)
	if ready == nil {
		i.report.Versions.Missing++
		i.reportMissing("version", v.ID, why)
		return i.refuseTasks(ctx, rows, "its version "+v.ID+" is not taken")
	}
	v.Definition = ready.Text
	if err := i.storeVersion(ctx, v); err != nil {
		return err
	}
	for _, row := range rows {
		if err := i.importTask(ctx, &v, ready.Plan, row); err != nil {
			return err
		}
	}
	return i.flushBatch(ctx)
}

// prepareVersion prepares a definition in the same way as the routes for PocketFlow clients.
func (i *flowImporter) prepareVersion(ctx context.Context, v persistence.Version,
	text []byte) (ready *persistence.Prepared, why string, err error) {
	switch {
	case !i.knownFlows[v.FlowID]:
		return nil, fmt.Sprintf("its flow %q is not there", v.FlowID), nil
	case !flow.IsText(v.ID) || v.ID == "":
		return nil, "its id cannot be kept", nil
	case v.Number < 1 || v.Number > persistence.MaxVersion:
		return nil, fmt.Sprintf("its number %d is not one of 1 to %d", v.Number, persistence.MaxVersion), nil
	}
	if err := flow.CheckName("the status", v.Status); err != nil {
		return nil, err.Error(), nil
	}
	ready, problems, err := persistence.Prepare(ctx, noFlows{},
		persistence.Publication{Definition: text, Limits: i.o.Limits, Parse: definition.ParseJSON,
			Profile: definition.ProfilePocketflow})
	if err == nil && ready == nil {
		why = "its definition cannot be used: " + strings.Join(strings.Fields(strings.ReplaceAll(problems.Error(), "\n", "; ")), " ")
	}
	return ready, why, err
}

func (i *flowImporter) storeVersion(ctx context.Context, v persistence.Version) error {
	there, err := isStored(i, ctx, v.ID, persistence.Store.Version)
	switch {
	case err != nil:
		return err
	case there:
		i.report.Versions.There++
		return i.renewLease(ctx)
	}
	i.report.Versions.Taken++
	if i.o.DryRun {
		return nil
	}
	if err := i.store.CreateVersion(ctx, v); err != nil {
		return err
	}
	return i.renewLease(ctx)
}

// refuseTasks reports tasks that are not imported.
func (i *flowImporter) refuseTasks(ctx context.Context, rows []int64, why string) error {
	for _, row := range rows {
		t, err := i.file.taskAt(ctx, row)
		if err != nil {
			return err
		}
		i.refuseTask(t.ID, why)
	}
	return nil
}

// refuseTask reports a task that is not imported, with its runs.
func (i *flowImporter) refuseTask(task, why string) {
	i.report.Tasks.Missing++
	i.report.Runs.Missing += len(i.file.runs[task])
	i.reportMissing("task", task, why)
}

// refuseOrphans reports the tasks with versions that the scheduler does not have.
func (i *flowImporter) refuseOrphans(ctx context.Context) error {
	for version, rows := range i.file.tasks {
		if err := i.refuseTasks(ctx, rows, fmt.Sprintf("its version %q is not there", version)); err != nil {
			return err
		}
	}
	return nil
}
