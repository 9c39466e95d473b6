package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// buildNext builds the command of the next release, which writes journals and snapshots that this
// release cannot read.
func buildNext(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "troupe-next")
	require.NoError(t, built.Program(path, "../../../cmd/troupe", "-tags", "troupe_next"))
	return path
}

// replace replaces a member by another program, as in an upgrade, and waits until it is ready.
func (m *members) replace(i int, program string) {
	require.NoError(m.t, m.processes[i].Stop(patience))
	m.program = program
	m.start(i)
	m.readyAt(m.processes[i], m.addresses[i])
}

// formats returns the formats of journal rows, of some tasks or of all.
func (s *stage) formats(tasks ...string) []string {
	s.t.Helper()
	ctx := s.t.Context()
	store, err := troupe.OpenStore(ctx, s.store, "")
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, store.Close()) }()
	if len(tasks) == 0 {
		all, err := store.ListTasks(ctx, persistence.TaskFilter{Limit: 1 << 20})
		require.NoError(s.t, err)
		for _, task := range all {
			tasks = append(tasks, task.ID)
		}
	}
	var found []string
	for _, task := range tasks {
		rows, err := store.Rows(ctx, task, 0, persistence.Part{Rows: 100_000, Bytes: 1 << 30})
		require.NoError(s.t, err)
		for _, row := range rows {
			format, _, _ := bytes.Cut(bytes.TrimPrefix(row.Events, []byte(`{"f":`)), []byte(","))
			found = append(found, string(format))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// upgradeOneByOne replaces the running members of a cluster one by one by those of the next
// release, including one step back.
func upgradeOneByOne(t *testing.T, p *plan) {
	begun, s, next := time.Now(), newStage(t, pgtest.DSN(t)), buildNext(t)
	m := s.together(3)
	require.NoError(t, errands.PublishAll(t.Context(), m.client))
	workers := [][]string{{"push-1", "attached-1", "demo-push", "demo-pull"}, {"pull-1", "attached-2", "push-2"}, {"pull-2", "attached-3"}}
	for i, names := range workers {
		m.at(i, func() {
			for _, name := range names {
				m.hire(name)
			}
		})
	}
	m.await("push-1", "push-2", "pull-1", "pull-2", "demo-push", "demo-pull")

	steps := []struct {
		member  int
		program string
	}{{0, next}, {0, binary}, {0, next}, {1, next}}
	e := s.storm(p.tasks, len(steps), func(wave int) {
		time.Sleep(300 * time.Millisecond)
		m.replace(steps[wave].member, steps[wave].program)
	})
	require.Equal(t, []string{"1"}, s.formats(), "as long as a member lives that knows no other")
	f := errands.Audit(t, s.store, e.byTask)
	want := p.want
	require.Equal(t, want, e.outcomes, "nothing is lost, and nothing is different")

	again := slices.Clone(p.tasks)
	for i := range again {
		again[i].Key = "again-" + again[i].Key
	}
	e = s.storm(again, 1, func(int) {
		time.Sleep(300 * time.Millisecond)
		m.replace(2, next)
	})
	require.Equal(t, want, e.outcomes)
	require.Eventually(t, func() bool {
		started, err := m.client.Start(t.Context(), fmt.Sprint(time.Now()), "choice", map[string]any{"n": 1})
		require.NoError(t, err)
		return slices.Equal([]string{"2"}, s.formats(started.ID))
	}, patience, 100*time.Millisecond, "when all know the newer one, it is written")

	s.program = binary
	late := s.serve("too-late", freeAddress(t))
	require.Error(t, late.Wait(patience))
	s.said("too-late", "journals are written in format 2, and this program knows up to 1: use a newer program", 1)
	for i, member := range m.processes {
		require.NoError(t, member.Stop(patience))
		text, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("member-%d.log", i)))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "written by a newer Troupe")
		assert.NotContains(t, string(text), "cannot be read")
	}
	s.tell("replaced members of three", len(steps)+1, begun, f)
}
