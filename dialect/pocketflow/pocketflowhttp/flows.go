package pocketflowhttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

type graphFlow struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	CreatedAt   int64  `json:"created_at"`
}

type graphVersion struct {
	ID         string `json:"id"`
	FlowID     string `json:"flow_id"`
	Version    int    `json:"version"`
	Definition string `json:"definition_json"`
	Status     string `json:"status"`
}

// createdVersion is the answer to a publication. Clients of the original product read only its id.
type createdVersion struct {
	ID       string                   `json:"id"`
	Warnings []wire.DefinitionProblem `json:"warnings,omitempty"`
}

// toSeconds converts the store's milliseconds to the dialect's seconds.
func toSeconds(ms int64) int64 { return ms / int64(time.Second/time.Millisecond) }

func (g *graph) createFlow(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	f := persistence.Flow{ID: "flow-" + uuid.NewString(), Name: b.Text("Name"), Description: b.Text("Description"),
		CreatedAt: g.Engine.Now().UnixMilli()}
	if f.Name == "" {
		return badRequest("name is missing")
	}
	if err := f.Check(); err != nil {
		return err
	}
	if err := g.Store.CreateFlow(r.Context(), f); err != nil {
		return err
	}
	return writeID(w, f.ID)
}

func (g *graph) listFlows(w http.ResponseWriter, r *http.Request) error {
	page, size := parsePaging(r)
	flows, total, err := g.Store.ListFlows(r.Context(), (page-1)*size, size)
	if err != nil {
		return err
	}
	rows := make([]graphFlow, len(flows))
	for i, f := range flows {
		rows[i] = graphFlow{f.ID, f.Name, f.Description, toSeconds(f.CreatedAt)}
	}
	return writePage(w, rows, total, page, size)
}

func (g *graph) createVersion(w http.ResponseWriter, r *http.Request) error {
	b, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	of, unknown := g.Store.Flow(r.Context(), b.Text("FlowID"))
	slug := ""
	if unknown == nil {
		slug = of.Slug
	}
	strict, err := api.IsStrict(r, b.Raw("strict"))
	if err != nil {
		return err
	}
	ready, err := g.definitionOf(r.Context(), b, slug, strict)
	if err != nil {
		return err
	}
	v := persistence.Version{ID: "ver-" + uuid.NewString(), FlowID: b.Text("FlowID"), Number: b.Number("Version"),
		Definition: ready.Text, Status: b.Text("Status"), CreatedAt: g.Engine.Now().UnixMilli()}
	if v.Number < 0 || v.Number > persistence.MaxVersion {
		return badRequest(fmt.Sprintf("version must be 1 to %d", persistence.MaxVersion))
	}
	if err := flow.CheckName("the status", v.Status); err != nil {
		return err
	}
	if api.Missing(unknown) {
		return notFound("flow not found")
	} else if unknown != nil {
		return unknown
	}
	if err := g.Store.CreateVersion(r.Context(), v); err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, createdVersion{v.ID, api.DefinitionProblems(ready.Warnings)})
	return nil
}

func (g *graph) listVersions(w http.ResponseWriter, r *http.Request) error {
	id := r.URL.Query().Get("flow_id")
	if id == "" {
		return badRequest("missing flow_id")
	}
	versions, err := g.Store.ListVersions(r.Context(), id)
	if err != nil {
		return err
	}
	list := api.ListWriter{To: w, Begin: "["}
	for i := range versions {
		v, unknown := g.Store.Version(r.Context(), versions[i].ID)
		if api.Missing(unknown) {
			continue // it was deleted
		}
		if err = unknown; err == nil {
			err = list.Add(toGraphVersion(v))
		}
		if err != nil {
			break
		}
	}
	return list.End(r, err, "]")
}

func (g *graph) getVersion(w http.ResponseWriter, r *http.Request) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		return badRequest("missing id")
	}
	v, err := g.Store.Version(r.Context(), id)
	if api.Missing(err) {
		return notFound("not found")
	} else if err != nil {
		return err
	}
	api.WriteJSON(w, http.StatusOK, toGraphVersion(v))
	return nil
}

// toGraphVersion returns a version with its definition as it was sent.
func toGraphVersion(v *persistence.Version) graphVersion {
	return graphVersion{v.ID, v.FlowID, v.Number, string(definition.CutProfile(v.Definition, definition.ProfilePocketflow)), v.Status}
}
