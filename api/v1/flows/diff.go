package flows

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/v1/catalog"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *Handler) addDiffRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "diff-versions", Method: http.MethodGet, Path: "/v1/flows/{flow}/diff", Tag: "flows",
		Summary: "Compare two versions of a flow",
		Text: "Compares the compiled forms, so the order of keys and other notations make no " +
			"difference. It also counts the running tasks of the older version."},
		h.diffVersions)
}

type diffInput struct {
	catalog.FlowPath
	From int `query:"from" minimum:"0" doc:"Number of the older version; 0 = the version before the other one."`
	To   int `query:"to" minimum:"0" doc:"Number of the newer version; 0 = the newest published one."`
}

func (h *Handler) diffVersions(ctx context.Context, in *diffInput) (*route.Response[wire.FlowDiff], error) {
	f, err := h.Catalog.FindFlow(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	to, err := h.Catalog.FindVersion(ctx, "query.to", f, in.To)
	if err != nil {
		return nil, err
	}
	number := in.From
	if number == 0 {
		if number, err = h.numberBefore(ctx, to); err != nil {
			return nil, err
		}
		if number == 0 {
			return nil, route.NewNotFoundError("query.from", "publish another version first",
				"flow %s has no version before %d", catalog.NameOf(f), to.Number)
		}
	}
	from, err := h.Catalog.FindVersion(ctx, "query.from", f, number)
	if err != nil {
		return nil, err
	}
	old, err := h.Reader.Plan(ctx, from.ID)
	if err != nil {
		return nil, err
	}
	now, err := h.Reader.Plan(ctx, to.ID)
	if err != nil {
		return nil, err
	}
	answer := wire.FlowDiff{Flow: catalog.NameOf(f), From: from.Number, To: to.Number, Changes: []wire.FlowChange{}}
	for _, c := range show.Diff(old, now) {
		answer.Changes = append(answer.Changes, wire.FlowChange(c))
	}
	older := min(from.Number, to.Number)
	answer.RunningTasks, err = h.Finder.CountListed(ctx, catalog.TaskPick{Flow: []string{catalog.NameOf(f)},
		Version: older, State: []string{"pending", "running", "canceling"}})
	return &route.Response[wire.FlowDiff]{Body: answer}, err
}

// numberBefore returns the number of the version before another version; 0 if there is none.
// Numbers may have gaps.
func (h *Handler) numberBefore(ctx context.Context, to *persistence.Version) (int, error) {
	versions, err := h.Store.ListVersions(ctx, to.FlowID)
	for i := range versions {
		if versions[i].Number < to.Number {
			return versions[i].Number, err
		}
	}
	return 0, err
}
