package pgflowhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/persistence"
)

// pgEnsured is the result of ensuring a definition.
type pgEnsured struct {
	Status      string                   `json:"status"`
	Differences []string                 `json:"differences"` // never null
	FlowSlug    string                   `json:"flow_slug"`
	Version     int                      `json:"version"` // number of the newest version
	Warnings    []wire.DefinitionProblem `json:"warnings,omitempty"`
}

// Results of ensuring a definition.
const (
	ensureCompiled = "compiled" // the flow is new
	ensureVerified = "verified" // its shape equals that of the newest version
	// its shape is new: there is a new version, and runs keep theirs
	ensureRecompiled = "recompiled"
	ensureMismatch   = "mismatch" // its shape is new, but the caller did not allow a change
)

// ensuring is a request to give a flow a definition.
type ensuring struct {
	slug   string
	sent   pgDefinition
	change bool // the shape of the flow may change
	strict bool // reject warnings
}

// handleEnsure gives a flow a definition. Only the shape is compared. If only times and tries
// differ, new runs use the new values and the result is still verified.
func (p *pgflow) handleEnsure(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	change := true
	if b.Has("allow_data_loss") && json.Unmarshal(b.Raw("allow_data_loss"), &change) != nil {
		return flow.Errorf(flow.Invalid, "allow_data_loss must be true or false, is %s", expr.KindOf(b.Raw("allow_data_loss")))
	}
	return p.writeEnsured(w, r, b, ensuring{slug: r.PathValue("slug"), change: change}, "definition", "allow_data_loss", "strict")
}

// createFlow is like handleEnsure, but the body or the definition names the flow.
func (p *pgflow) createFlow(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	return p.writeEnsured(w, r, b, ensuring{slug: cmp.Or(b.Text("slug"), b.Text("flow_slug")),
		change: true}, "slug", "flow_slug", "definition", "strict")
}

// writeEnsured answers a request with a definition in its body and only known fields.
func (p *pgflow) writeEnsured(w http.ResponseWriter, r *http.Request, b *api.Body, e ensuring, known ...string) (err error) {
	if b.Bad {
		return b.Problem()
	}
	if name := b.Unknown(known...); name != "" {
		return flow.Errorf(flow.Invalid, "there is no field %.80q beside definition: known are %s", name, strings.Join(known, ", "))
	}
	if e.strict, err = api.IsStrict(r, b.Raw("strict")); err != nil {
		return err
	}
	if e.sent, err = readDefinition(b.Raw("definition")); err != nil {
		return err
	}
	if d, _ := e.sent.parseWritten(nil); e.slug == "" && d != nil {
		e.slug = d.Name
	}
	answer, err := p.ensureFlow(r.Context(), e)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// ensureFlow compares and publishes. A member handles definitions of the same flow one after the
// other: the first creates the flow, and the others find it. If another member has published
// meanwhile, the comparison is repeated.
func (p *pgflow) ensureFlow(ctx context.Context, e ensuring) (*pgEnsured, error) {
	turn := p.flowLock(e.slug)
	turn.Lock()
	defer turn.Unlock()
	for range ensureTries {
		answer, err := p.ensureOnce(ctx, e)
		if !errors.Is(err, persistence.ErrOvertaken) {
			return answer, err
		}
	}
	return nil, flow.Errorf(flow.Busy, "others change the flow %.140q all the time: try again", e.slug)
}

// ensureTries is the maximum number of comparisons while other callers publish.
const ensureTries = 20

func (p *pgflow) ensureOnce(ctx context.Context, e ensuring) (*pgEnsured, error) {
	publication := persistence.Publication{Slug: e.slug, Definition: e.sent.text, Parse: e.sent.parseWritten, Strict: e.strict,
		Now: p.engine.Now().UnixMilli(), Limits: p.limits, Secret: p.secret, Func: p.function, CheckSlug: checkFlowSlug}
	ready, problems, err := persistence.Prepare(ctx, p.store, publication)
	switch {
	case err != nil:
		return nil, err
	case ready == nil:
		return nil, problems
	}
	answer := &pgEnsured{Status: ensureCompiled, Differences: []string{}, FlowSlug: e.slug,
		Warnings: api.DefinitionProblems(ready.Warnings)}
	publication.After = &answer.Version
	_, newest, err := p.newestVersion(ctx, e.slug)
	switch {
	case api.Missing(err):
	case err != nil:
		return nil, err
	default:
		old, err := p.reader.Plan(ctx, newest.ID)
		if err != nil {
			return nil, err
		}
		answer.Status, answer.Version = ensureVerified, newest.Number
		if answer.Differences = show.Differences(old, ready.Plan); len(answer.Differences) > 0 {
			answer.Status = ensureRecompiled
		}
		if !e.change && answer.Status == ensureRecompiled {
			answer.Status = ensureMismatch
			return answer, nil
		}
	}
	published, err := persistence.PublishPrepared(ctx, p.store, publication, ready)
	if err != nil {
		return nil, err
	}
	// published by another caller
	if answer.Version = published.Version.Number; !published.Created {
		answer.Status, answer.Differences = ensureVerified, []string{}
	}
	return answer, nil
}

// flowLock returns the lock of a flow. Several flows may share a lock.
func (p *pgflow) flowLock(slug string) *sync.Mutex {
	return &p.ensureLocks[maphash.String(p.seed, slug)%uint64(len(p.ensureLocks))]
}

var flowSlug = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkFlowSlug checks the slug of a flow created in this dialect. Flows created elsewhere may have
// other slugs.
func checkFlowSlug(slug string) error {
	switch {
	case !flowSlug.MatchString(slug):
		return flow.Errorf(flow.Invalid, "the flow's slug %.140q is none: it begins with a "+
			"letter or _ and has up to 128 letters, digits and _", slug)
	case slug == "run", slug == "output":
		return flow.Errorf(flow.Invalid, "the slug %s is reserved: choose another one", slug)
	}
	return nil
}

// deleteFlow deletes a flow with all its runs. Runs under way are cancelled first.
func (p *pgflow) deleteFlow(w http.ResponseWriter, r *http.Request) error {
	slug := r.PathValue("slug")
	if data, _ := strconv.ParseBool(r.URL.Query().Get("data")); !data {
		return flow.Errorf(flow.Invalid, "a flow is deleted with all its runs: confirm that with ?data=true")
	}
	f, err := p.store.FlowBySlug(r.Context(), slug)
	if api.Missing(err) {
		return flow.Errorf(flow.NotFound, "there is no flow %.140q", slug)
	}
	deleted := 0
	if err == nil {
		deleted, err = api.DeleteFlow(r.Context(), p.engine, p.store, f.ID)
	}
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, map[string]any{"flow_slug": slug, "deleted_runs": deleted})
	return nil
}
