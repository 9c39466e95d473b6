package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/persistence"
)

// Flows of the model. Flows that are never deleted are known only by their versions.

func (m *storeModel) hasVersion(version string) bool {
	_, ok := m.versions[version]
	return ok
}

func (m *storeModel) CreateFlow(_ context.Context, f persistence.Flow) error {
	for _, other := range m.flows {
		if other.ID == f.ID || other.Slug == f.Slug {
			return persistence.ErrDuplicate
		}
	}
	m.flows[f.ID] = f
	return nil
}

func (m *storeModel) Flow(_ context.Context, id string) (*persistence.Flow, error) {
	return &persistence.Flow{ID: id, Slug: id}, nil
}

func (m *storeModel) FlowBySlug(_ context.Context, slug string) (*persistence.Flow, error) {
	for _, f := range m.flows {
		if f.Slug == slug {
			return &f, nil
		}
	}
	return nil, persistence.ErrNotFound
}

func (m *storeModel) CreateVersion(_ context.Context, v persistence.Version) error {
	if _, ok := m.flows[v.FlowID]; !ok {
		return persistence.ErrNotFound
	}
	if m.hasVersion(v.ID) {
		return persistence.ErrDuplicate
	}
	m.versions[v.ID] = v
	return nil
}

func (m *storeModel) Version(_ context.Context, id string) (*persistence.Version, error) {
	v, ok := m.versions[id]
	if !ok {
		return nil, persistence.ErrNotFound
	}
	return &v, nil
}

// FindVersion returns the newest version; the simulation needs no other version.
func (m *storeModel) FindVersion(_ context.Context, flowID string, _ int) (*persistence.Version, error) {
	var newest *persistence.Version
	for _, v := range m.versions {
		if v.FlowID == flowID && (newest == nil || v.Number > newest.Number) {
			newest = &v
		}
	}
	if newest == nil {
		return nil, persistence.ErrNotFound
	}
	return newest, nil
}

func (m *storeModel) DeleteFlow(_ context.Context, id string, limit int) (int, error) {
	n := 0
	for _, task := range slices.Sorted(maps.Keys(m.tasks)) {
		if m.tasks[task].FlowID == id && n < limit {
			m.deleteTask(task)
			n++
		}
	}
	if n < limit {
		delete(m.flows, id)
		maps.DeleteFunc(m.versions, func(_ string, v persistence.Version) bool { return v.FlowID == id })
	}
	return n, nil
}

func (m *storeModel) deleteTask(task string) {
	delete(m.tasks, task)
	m.permits.Drop(task)
	m.externals.Drop(task)
	maps.DeleteFunc(m.queue, func(_ string, q persistence.QueueRow) bool { return q.Task == task })
	m.check.tasks[task].deleted = true
	m.w.addTrace("task %s is deleted", task)
}
