package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Plan is the compiled form of a version.
func (r *Reader) Plan(ctx context.Context, version string) (*flow.Plan, error) {
	return r.plans.loadPlan(ctx, version)
}

// Forget lets go of a version that is known to be there no longer.
func (r *Reader) Forget(version string) { r.plans.forgetPlan(version) }

// maxPlanBytes bounds the memory of plans that are kept; those in use by a task are kept by it
// anyway.
const maxPlanBytes = 64 << 20

// planCache are those of the versions that were used last. They are immutable, so they are kept.
type planCache struct {
	store    Store
	limits   flow.Limits
	contents flow.Contents // nil = no value is kept elsewhere

	mu   sync.Mutex
	kept *lru.Cache[*flow.Plan] // by version

	large sync.Mutex // held while the plan of a large definition is made: one at a time
}

// largeDefinition is from how many bytes on a definition waits for others: making its plan takes
// many times as much.
const largeDefinition = 64 << 10

func newPlans(store Store, limits flow.Limits) planCache {
	return planCache{store: store, limits: limits.OrDefault(), kept: lru.New[*flow.Plan](maxPlanBytes)}
}

func (p *planCache) loadPlan(ctx context.Context, version string) (*flow.Plan, error) {
	if plan := p.cachedPlan(version); plan != nil {
		return plan, nil
	}
	v, err := p.store.Version(ctx, version)
	if errors.Is(err, ErrNotFound) {
		return nil, flow.Errorf(flow.NotFound, "there is no flow version %s", version)
	}
	if err != nil {
		return nil, fmt.Errorf("reading flow version %s: %w", version, err)
	}
	f, err := p.store.Flow(ctx, v.FlowID)
	switch {
	case errors.Is(err, ErrNotFound):
		f = &Flow{}
	case err != nil:
		return nil, fmt.Errorf("reading flow %s: %w", v.FlowID, err)
	}
	return p.makePlan(v, f.Slug)
}

// makePlan makes a plan, unless somebody else has meanwhile, and keeps it.
func (p *planCache) makePlan(v *Version, slug string) (*flow.Plan, error) {
	if len(v.Definition) >= largeDefinition {
		p.large.Lock()
		defer p.large.Unlock()
		if plan := p.cachedPlan(v.ID); plan != nil {
			return plan, nil
		}
	}
	plan, err := lowerVersion(v, p.limits)
	if err != nil {
		return nil, err
	}
	plan.FlowSlug = slug
	if p.contents != nil {
		plan.Keep(p.contents)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept.Put(v.ID, plan, plan.Size())
	return plan, nil
}

func (p *planCache) cachedPlan(version string) *flow.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan, _ := p.kept.Get(version)
	return plan
}

func (p *planCache) forgetPlan(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept.Drop(version)
}

func (p *planCache) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept.Clear()
}

// lowerVersion makes the plan of a version that was published. It was checked then, by the rules
// and limits of that time; those of today must not keep its tasks from going on.
func lowerVersion(v *Version, limits flow.Limits) (*flow.Plan, error) {
	d, err := define.ParsePublished(v.Definition)
	if d == nil {
		return nil, fmt.Errorf("%w: flow version %s: %w", ErrUnreadable, v.ID, err)
	}
	plan := compile.Lower(d, limits)
	plan.FlowID = v.FlowID
	return plan, nil
}
