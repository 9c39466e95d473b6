package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// largeValues is a flow whose inputs, outputs and results have 200 KB each, from expressions and
// from functions.
const largeValues = `
nodes:
  first: {func: log_result, prep: {expr: "{'text': run.text + 'a'}"}}
  second: {func: log_result, depends_on: [first], prep: {expr: "{'text': deps.first.text + 'b'}"}}
  third: {func: upper, depends_on: [second], prep: {input_key: $deps.second.text}}
`

const largeText = 200 << 10

// textOf returns the params of a task, and madeOf its result.
func textOf(i int) string {
	return strings.Repeat(fmt.Sprintf("task %d. ", i), largeText/10)
}

func madeOf(i int) string { return strings.ToUpper(textOf(i) + "ab") }

// tasksPerKill is the number of tasks started before each kill.
const tasksPerKill = 12

// maxKillsPerTask is the number of kills that a task may see before the next kill waits for its
// end. On a slow machine an attempt that loses its member five times would be given up.
const maxKillsPerTask = 3

// killAmongValues repeatedly kills a member while objects, and rows that refer to them, are
// written. It checks the result of each task, the object of each reference, and the removal of
// objects without references.
func killAmongValues(t *testing.T, p *plan, store string) {
	begun, rng, s := time.Now(), p.rng(t), newStage(t, store)
	folder := filepath.Join(s.dir, "values")
	s.settings = []string{"--payload-store", "file://" + filepath.ToSlash(folder)}
	s.launch()
	s.ready()
	require.NoError(t, s.client.Publish(t.Context(), "large", []byte(largeValues)))
	waves := make([]sync.WaitGroup, p.kills)
	var mu sync.Mutex
	made := map[string]int{}
	awaitWave := func(wave int) {
		waves[wave].Wait()
		mu.Lock()
		all := maps.Clone(made)
		mu.Unlock()
		for task, i := range all {
			if i/tasksPerKill == wave {
				s.made(task, i)
			}
		}
	}
	for wave := range p.kills {
		for i := wave * tasksPerKill; i < (wave+1)*tasksPerKill; i++ {
			waves[wave].Go(func() {
				started, err := s.client.Start(t.Context(), fmt.Sprint("large-", i), "large", map[string]string{"text": textOf(i)})
				if assert.NoError(t, err) {
					mu.Lock()
					defer mu.Unlock()
					made[started.ID] = i
				}
			})
		}
		s.ready()
		if wave >= maxKillsPerTask {
			awaitWave(wave - maxKillsPerTask)
		}
		time.Sleep(millis(rng, 0, 700))
		s.crash()
		s.launch()
	}
	for wave := range waves {
		waves[wave].Wait()
	}
	s.ready()
	for task, i := range made {
		s.made(task, i)
	}
	s.leave()
	refs := s.references(slices.Sorted(maps.Keys(made)))
	orphans := orphansOf(t, folder, refs)
	t.Logf("%d kills, %d tasks, %d objects that something refers to, %d that nothing does, %.1f s",
		p.kills, len(made), len(refs), orphans, time.Since(begun).Seconds())
	if store == "" {
		s.sweeps(folder)
	}
}

// made waits for a task and checks its result.
func (s *stage) made(task string, i int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	end, err := s.client.End(ctx, task)
	require.NoError(s.t, err)
	require.EqualValues(s.t, flow.TaskCompleted, end.State, end.Error)
	var got map[string]string
	require.NoError(s.t, json.Unmarshal(end.Result, &got))
	require.Equal(s.t, sha256.Sum256([]byte(madeOf(i))), sha256.Sum256([]byte(got["third"])), "task %s, which was the %dth", task, i)
}

// references returns the keys of the objects to which the histories of tasks refer.
func (s *stage) references(tasks []string) map[string]bool {
	store, err := troupe.OpenStore(s.t.Context(), s.store, "")
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, store.Close()) }()
	secret, err := store.Secret(s.t.Context())
	require.NoError(s.t, err)
	values, refs := payload.New(payload.Options{Secret: secret, Over: largeText}), map[string]bool{}
	for _, task := range tasks {
		row, err := store.Task(s.t.Context(), task)
		require.NoError(s.t, err)
		rows, err := store.Rows(s.t.Context(), task, 0, persistence.Part{Rows: 1000, Bytes: 16 << 20})
		require.NoError(s.t, err)
		texts := [][]byte{row.Params}
		for _, row := range rows {
			require.Less(s.t, len(row.Events), 8<<10, "a large value is in the store")
			texts = append(texts, row.Events)
		}
		for _, text := range texts {
			for _, r := range values.Refs(text) {
				refs[r.Key()] = true
			}
		}
	}
	return refs
}

// orphansOf checks the objects against their hashes and the references, and returns the number of
// unreferenced ones.
func orphansOf(t *testing.T, folder string, refs map[string]bool) (orphans int) {
	t.Helper()
	there := map[string]bool{}
	for _, name := range objectsIn(t, folder) {
		key, err := filepath.Rel(folder, name)
		require.NoError(t, err)
		key = filepath.ToSlash(key)
		if !refs[key] {
			orphans++
			continue
		}
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		require.True(t, strings.HasPrefix(filepath.Base(name), hex.EncodeToString(sum[:])+"."), "%s is not what was written", key)
		there[key] = true
	}
	require.Equal(t, refs, there, "a reference has no object")
	return orphans
}

// objectsIn returns the files in the folders of tasks.
func objectsIn(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "values", "*", "*"))
	require.NoError(t, err)
	return names
}

// sweeps makes all objects old and deletes all tasks; then no object may remain, including one of a
// task that never started.
func (s *stage) sweeps(folder string) {
	lost := filepath.Join(folder, "values", "task-never", strings.Repeat("0", 64)+".LOST")
	require.NoError(s.t, os.MkdirAll(filepath.Dir(lost), 0o700))
	require.NoError(s.t, os.WriteFile(lost, []byte("{}"), 0o600))
	ago := time.Now().Add(-11 * time.Hour)
	require.NoError(s.t, filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
		require.NoError(s.t, err)
		return os.Chtimes(name, ago, ago)
	}))
	s.settings = append(s.settings, "--retention", "1s")
	s.launch()
	s.ready()
	require.Eventually(s.t, func() bool {
		left, err := os.ReadDir(filepath.Join(folder, "values"))
		require.NoError(s.t, err)
		return len(left) == 0
	}, patience, 50*time.Millisecond, "objects are left")
	s.leave()
}
