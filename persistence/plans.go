package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// Plan returns the compiled form of a version.
func (r *Reader) Plan(ctx context.Context, version string) (*flow.Plan, error) {
	return r.plans.loadPlan(ctx, version)
}

// Forget drops the plan of a deleted version from the cache.
func (r *Reader) Forget(version string) { r.plans.forgetPlan(version) }

// maxPlanBytes bounds the memory of cached plans. Plans in use by tasks stay in memory in addition.
const maxPlanBytes = 64 << 20

// planCache caches the plans of the most recently used versions. Versions are immutable, so their
// plans never become stale.
type planCache struct {
	store    Store
	limits   flow.Limits
	contents flow.Contents // nil means that all values are in the store

	mu   sync.Mutex
	kept *lru.Cache[*flow.Plan] // by version

	large sync.Mutex // held while a large definition is compiled, so only one compiles at a time
}

// largeDefinition is the size in bytes from which definitions are compiled one at a time, because
// compiling takes many times that memory.
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

// makePlan compiles a version and caches the plan, unless another caller has done so meanwhile.
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

// lowerVersion compiles a published version. It does not check the definition again, because newer
// rules must not stop tasks of a version that was valid when published.
func lowerVersion(v *Version, limits flow.Limits) (*flow.Plan, error) {
	d, err := definition.ParsePublished(v.Definition)
	if d == nil {
		return nil, fmt.Errorf("%w: flow version %s: %w", ErrUnreadable, v.ID, err)
	}
	plan := compile.Lower(d, limits)
	plan.FlowID = v.FlowID
	return plan, nil
}
