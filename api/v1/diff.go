package v1

import (
	"context"
	"net/http"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow/show"
	"github.com/troupe-engine/troupe/persistence"
)

func (h *flowHandler) addDiffRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "diff-versions", method: http.MethodGet, path: "/v1/flows/{flow}/diff", tag: "flows",
		summary: "See how two versions of a flow differ",
		text: "In what it is compiled to, so the order of keys and other ways to write the " +
			"same make no difference. Tells how many tasks go on with the older version, too."},
		h.diffVersions)
}

type diffInput struct {
	FlowPath
	From int `query:"from" minimum:"0" doc:"number of a version; 0 = the one before the other"`
	To   int `query:"to" minimum:"0" doc:"number of a version; 0 = the newest published one"`
}

func (h *flowHandler) diffVersions(ctx context.Context, in *diffInput) (*bodyResponse[wire.FlowDiff], error) {
	f, err := h.catalog.flowBy(ctx, "path.flow", in.Flow)
	if err != nil {
		return nil, err
	}
	to, err := h.catalog.findVersion(ctx, "query.to", f, in.To)
	if err != nil {
		return nil, err
	}
	number := in.From
	if number == 0 {
		if number, err = h.numberBefore(ctx, to); err != nil {
			return nil, err
		}
		if number == 0 {
			return nil, newNotFoundError("query.from", "publish another version first",
				"flow %s has no version before %d", nameOf(f), to.Number)
		}
	}
	from, err := h.catalog.findVersion(ctx, "query.from", f, number)
	if err != nil {
		return nil, err
	}
	old, err := h.reader.Plan(ctx, from.ID)
	if err != nil {
		return nil, err
	}
	now, err := h.reader.Plan(ctx, to.ID)
	if err != nil {
		return nil, err
	}
	answer := wire.FlowDiff{Flow: nameOf(f), From: from.Number, To: to.Number, Changes: []wire.FlowChange{}}
	for _, c := range show.Diff(old, now) {
		answer.Changes = append(answer.Changes, wire.FlowChange(c))
	}
	older := min(from.Number, to.Number)
	answer.UnderWay, err = h.finder.countListed(ctx, TaskPick{Flow: []string{nameOf(f)},
		Version: older, State: []string{"pending", "running", "canceling"}})
	return &bodyResponse[wire.FlowDiff]{answer}, err
}

// numberBefore returns the number of the version before another one; 0 if there is none. Numbers
// may have gaps.
func (h *flowHandler) numberBefore(ctx context.Context, to *persistence.Version) (int, error) {
	versions, err := h.store.ListVersions(ctx, to.FlowID)
	for i := range versions {
		if versions[i].Number < to.Number {
			return versions[i].Number, err
		}
	}
	return 0, err
}
