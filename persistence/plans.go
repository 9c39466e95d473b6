package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-engine/troupe/flow"
)

// Plan is the compiled form of a version.
func (r *Reader) Plan(ctx context.Context, version string) (*flow.Plan, error) {
	return r.plans.plan(ctx, version)
}

// Forget lets go of a version that is known to be there no longer.
func (r *Reader) Forget(version string) { r.plans.forget(version) }

// plans are the compiled versions that are in use. They are immutable, so they are kept.
type plans struct {
	store  Store
	limits flow.Limits

	mu sync.Mutex
	of map[string]*flow.Plan // by version
}

// maxPlans bounds how many compiled versions are kept in memory.
const maxPlans = 4096

func (p *plans) plan(ctx context.Context, version string) (*flow.Plan, error) {
	p.mu.Lock()
	plan := p.of[version]
	p.mu.Unlock()
	if plan != nil {
		return plan, nil
	}
	v, err := p.store.Version(ctx, version)
	if errors.Is(err, ErrNotFound) {
		return nil, flow.Errorf(flow.NotFound, "there is no flow version %s", version)
	}
	if err != nil {
		return nil, fmt.Errorf("reading flow version %s: %w", version, err)
	}
	if plan, err = lower(v, p.limits); err != nil {
		return nil, err
	}
	switch f, err := p.store.Flow(ctx, v.FlowID); {
	case err == nil:
		plan.FlowSlug = f.Slug
	case !errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("reading flow %s: %w", v.FlowID, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.of) >= maxPlans {
		clear(p.of)
	}
	p.of[version] = plan
	return plan, nil
}

func (p *plans) forget(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, version)
}

// lower makes the plan of a version that was published. It was checked then, by the rules and limits of that
// time; those of today must not keep its tasks from going on.
func lower(v *Version, limits flow.Limits) (*flow.Plan, error) {
	d, err := flow.ParsePublished(v.Definition)
	if d == nil {
		return nil, fmt.Errorf("%w: flow version %s: %w", ErrUnreadable, v.ID, err)
	}
	plan := flow.Lower(d, limits)
	plan.FlowID = v.FlowID
	return plan, nil
}
