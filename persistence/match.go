package persistence

import (
	"slices"
	"strings"
)

// Match reports whether the filter selects a task, apart from paging. It ignores Queued, because
// only the store knows which tasks have queued jobs.
func (f *TaskFilter) Match(t *TaskRow) bool {
	for key, value := range f.Labels {
		if has, ok := t.Labels[key]; !ok || has != value {
			return false
		}
	}
	lasted := t.EndedAt - t.CreatedAt
	return (len(f.FlowIDs) == 0 || slices.Contains(f.FlowIDs, t.FlowID)) &&
		(f.Version == 0 || f.Version == t.VersionNumber) &&
		(f.Node == "" || f.Node == t.Cursor) &&
		(f.Text == "" || containsText(t, f.Text)) &&
		(f.Failure == "" || f.Failure == Failure(t.Error)) &&
		(!f.ByEnd && max(f.EndedFrom, f.EndedTo, f.LastedFrom, f.LastedTo) == 0 || t.EndedAt > 0) &&
		(f.EndedFrom == 0 || t.EndedAt >= f.EndedFrom) &&
		(f.EndedTo == 0 || t.EndedAt < f.EndedTo) &&
		(f.LastedFrom == 0 || lasted >= f.LastedFrom) &&
		(f.LastedTo == 0 || lasted < f.LastedTo) &&
		(f.FlowID == "" || f.FlowID == t.FlowID) &&
		(f.FlowSlug == "" || f.FlowSlug == t.FlowSlug) &&
		(f.Waits == 0 || f.Waits&t.Waits != 0) &&
		(f.VersionID == "" || f.VersionID == t.VersionID) &&
		strings.HasPrefix(t.ID, f.IDPrefix) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, t.Status)) &&
		(f.CreatedFrom == 0 || t.CreatedAt >= f.CreatedFrom) &&
		(f.CreatedTo == 0 || t.CreatedAt < f.CreatedTo) &&
		(f.Paused == nil || *f.Paused == t.Paused)
}

// containsText reports whether the text equals a label, is a prefix of the id, or is contained in
// the error, ignoring case.
func containsText(t *TaskRow, text string) bool {
	for _, value := range t.Labels {
		if value == text {
			return true
		}
	}
	return strings.HasPrefix(t.ID, text) || strings.Contains(strings.ToLower(t.Error), strings.ToLower(text))
}
