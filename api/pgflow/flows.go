package pgflow

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"net/http"
	"regexp"
	"strconv"
	"sync"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/show"
	"github.com/troupe-engine/troupe/persistence"
)

// pgEnsured says what became of a definition.
type pgEnsured struct {
	Status      string   `json:"status"`
	Differences []string `json:"differences"` // never null
	FlowSlug    string   `json:"flow_slug"`
	Version     int      `json:"version"` // the newest one now
}

// What ensuring a definition comes to.
const (
	ensureCompiled   = "compiled"   // the flow is new
	ensureVerified   = "verified"   // its shape is that of the newest version
	ensureRecompiled = "recompiled" // it is another one: there is a new version, runs keep theirs
	ensureMismatch   = "mismatch"   // it is another one, and the caller did not want that
)

// ensure has a flow be as a definition says. What counts is the shape: of one that differs in times and
// tries alone, new runs take the new ones, and it is still verified.
func (p *pgflow) ensure(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Definition    json.RawMessage `json:"definition"`
		AllowDataLoss *bool           `json:"allow_data_loss"`
	}
	if err := decode(r, &q); err != nil {
		return err
	}
	sent, err := readDefinition(q.Definition)
	if err != nil {
		return err
	}
	return p.writeEnsured(w, r, r.PathValue("slug"), sent, q.AllowDataLoss)
}

// createFlow is ensure for those who name the flow in the body, or in the definition.
func (p *pgflow) createFlow(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	sent, err := readDefinition(b.Raw("definition"))
	if err != nil {
		return err
	}
	slug := b.Text("slug")
	if slug == "" {
		slug = b.Text("flow_slug")
	}
	if d, _ := define.Parse(sent.text); slug == "" && d != nil {
		slug = d.Name
	}
	return p.writeEnsured(w, r, slug, sent, nil)
}

func (p *pgflow) writeEnsured(w http.ResponseWriter, r *http.Request, slug string, sent pgDefinition, allow *bool) error {
	answer, err := p.ensured(r.Context(), slug, sent, allow == nil || *allow)
	if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// ensured compares and publishes. Definitions of one flow are ensured one after the other, on one member: of several that come at
// once, one makes the flow and the others find it. Who was overtaken on another member compares again.
func (p *pgflow) ensured(ctx context.Context, slug string, sent pgDefinition, change bool) (*pgEnsured, error) {
	turn := p.turn(slug)
	turn.Lock()
	defer turn.Unlock()
	for range ensureTries {
		answer, err := p.ensureOnce(ctx, slug, sent, change)
		if !errors.Is(err, persistence.ErrOvertaken) {
			return answer, err
		}
	}
	return nil, flow.Errorf(flow.Busy, "others change the flow %.140q all the time: try again", slug)
}

// ensureTries is how often a definition is compared while others publish theirs.
const ensureTries = 20

func (p *pgflow) ensureOnce(ctx context.Context, slug string, sent pgDefinition, change bool) (*pgEnsured, error) {
	publication := persistence.Publication{Slug: slug, Definition: sent.text, Parse: sent.parse,
		Now: p.engine.Now().UnixMilli(), Limits: p.limits, Secret: p.secret, CheckSlug: checkFlowSlug}
	ready, problems, err := persistence.Prepare(ctx, p.store, publication)
	switch {
	case err != nil:
		return nil, err
	case ready == nil:
		return nil, problems.Err()
	}
	answer := &pgEnsured{Status: ensureCompiled, Differences: []string{}, FlowSlug: slug}
	publication.After = &answer.Version
	_, newest, err := p.newest(ctx, slug)
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
		if !change && answer.Status == ensureRecompiled {
			answer.Status = ensureMismatch
			return answer, nil
		}
	}
	v, created, err := persistence.Publish(ctx, p.store, publication)
	if err != nil {
		return nil, err
	}
	if answer.Version = v.Number; !created { // by somebody else meanwhile
		answer.Status, answer.Differences = ensureVerified, []string{}
	}
	return answer, nil
}

// turn is the lock of a flow, which it shares with a few others.
func (p *pgflow) turn(slug string) *sync.Mutex {
	return &p.ensuring[maphash.String(p.seed, slug)%uint64(len(p.ensuring))]
}

var flowSlug = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkFlowSlug is about flows that this dialect makes; those made elsewhere may be called otherwise.
func checkFlowSlug(slug string) error {
	switch {
	case !flowSlug.MatchString(slug):
		return flow.Errorf(flow.Invalid, "the flow's slug %.140q is none: it begins with a letter or _ and has up to 128 letters, digits and _", slug)
	case slug == "run", slug == "output":
		return flow.Errorf(flow.Invalid, "the slug %s is reserved: choose another one", slug)
	}
	return nil
}

// deleteFlow deletes a flow with all its runs, also those that are under way: they are cancelled first.
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
