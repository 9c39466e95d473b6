package actors

import (
	"cmp"
	"log/slog"

	"github.com/troupe-engine/troupe/flow"
)

// logFailedTask logs that a task has failed. The log line omits the error text, which may contain
// data of users and is stored in the task.
func (m memberEnding) logFailedTask(id string, s *flow.State, status flow.TaskStatus) {
	if status != flow.TaskFailed {
		return
	}
	leftOut, ok := m.failed.Admit(m.lease.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("task", id)}
	for name, value := range map[string]string{"flow": s.Plan.FlowSlug, "node": cmp.Or(s.Root.FailedAt, s.Root.Cursor)} {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("others_not_logged", leftOut))
	}
	m.log.LogAttrs(m.work.Context(), slog.LevelInfo, "task failed", attrs...)
}
