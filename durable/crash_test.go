//go:build unix

package durable_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// eachStore runs a test with both databases.
func eachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db")) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, pgtest.DSN(t)) })
}

// startTask publishes the flow of a function and starts a task of it, by an engine that has closed
// when it returns.
func startTask(t *testing.T, store, name, task string) (id string) {
	t.Helper()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: store})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), name, fmt.Appendf(nil, `{"name":%q,"mode":"code","code":%q,
		"inputs":{"type":"object","properties":{"name":{"type":"string"},
		"round":{"type":"integer"},"sum":{"type":"integer"}}}}`, name, name)))
	id, err = e.Start(t.Context(), name, input{task})
	require.NoError(t, err)
	return id
}

// runUntilEnd starts programs, one after another, until one of them does not kill itself. It
// returns their number and the output of the last one.
func runUntilEnd(t *testing.T, s setup) (programs int, said string) {
	t.Helper()
	for {
		programs++
		p, _ := startProgram(t, s)
		err := p.Wait(patience)
		if err == nil {
			return programs, p.Said()
		}
		require.ErrorContains(t, err, "killed", p.Said())
	}
}

// requireRecordedOnce checks that no step of a task ran after a later one, and that the key of a
// step was the same whenever it ran.
func requireRecordedOnce(t *testing.T, lines [][]string, task string) {
	t.Helper()
	last, keys := 0, map[string]string{}
	for _, line := range lines {
		if line[1] != task || !strings.HasPrefix(line[0], "step") {
			continue
		}
		var k int
		_, err := fmt.Sscanf(line[0], "step%d", &k)
		require.NoError(t, err)
		require.Truef(t, k == last || k == last+1, "%s of %s ran after step %d: %v", line[0], task, last, lines)
		key := line[len(line)-1]
		if earlier, ran := keys[line[0]]; ran {
			require.Equal(t, earlier, key, "the idempotency key of "+line[0])
		}
		last, keys[line[0]] = k, key
	}
	require.Equal(t, 10, last)
	require.Len(t, slices.Compact(slices.Sorted(maps.Values(keys))), 10, "each step has a key of its own")
}

// TestFunctionGoesOnBehindItsRecordedSteps kills the program behind ten steps, and within some of
// them. A member on PostgreSQL waits for the lease of a killed one, so it is killed less often: the
// other steps are those of TestAnotherMemberGoesOnWithTheFunctions.
func TestFunctionGoesOnBehindItsRecordedSteps(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Tasks: []string{startTask(t, store, "ten", "a")}}
		s.Kills = []string{"a-after-2", "a-after-4", "a-in-5", "a-after-6", "a-after-8", "a-after-9", "a-after-10"}
		if strings.HasPrefix(store, "sqlite:") {
			s.Kills = append(s.Kills, "a-in-1", "a-after-1", "a-after-3", "a-after-5", "a-after-7", "a-in-10")
		}
		programs, said := runUntilEnd(t, s)
		require.Equal(t, len(s.Kills)+1, programs)
		require.Contains(t, said, "completed 55")
		lines := readLedger(t, s.Dir)
		requireRecordedOnce(t, lines, "a")
		for k := 1; k <= 10; k++ {
			times := 1
			if slices.Contains(s.Kills, fmt.Sprint("a-in-", k)) {
				times = 2 // it was cut off, and ran again
			}
			require.Equal(t, times, countLines(lines, fmt.Sprint("step", k)), "step %d", k)
		}
		e, err := troupe.Open(t.Context(), troupe.Config{Store: store})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		require.Equal(t, "1 2 3 4 5 6 7 8 9 10", readStream(t, e, s.Tasks[0], "steps"), "replays write no value twice")
	})
}

// TestCanceledFunctionIsUndoneDespiteKills cancels a task during a step, and kills the program
// within each undo.
func TestCanceledFunctionIsUndoneDespiteKills(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Kills: []string{"a-undo-3", "a-undo-2", "a-undo-1"}}
		s.Tasks = []string{startTask(t, store, "trip", "a")}
		s.Cancels = true
		programs, said := runUntilEnd(t, s)
		require.Equal(t, 4, programs)
		require.Contains(t, said, "canceled")
		lines := readLedger(t, s.Dir)
		require.Equal(t, 1, countLines(lines, "wait"))
		require.Equal(t, 1, countLines(lines, "stopped"), "the context of the step has ended")
		var undone []string
		for _, line := range lines {
			if strings.HasPrefix(line[0], "undo") {
				undone = append(undone, line[0])
			}
		}
		require.Equal(t, []string{"undo3", "undo3", "undo2", "undo2", "undo1", "undo1"}, undone,
			"an undo that was cut off runs again, one that was recorded does not")
	})
}

// startMembers starts programs that share a store.
func startMembers(t *testing.T, s setup, n int) (programs []*process.Process, inputs []*os.File) {
	t.Helper()
	for i := range n {
		s.Name = fmt.Sprint("m", i)
		p, in := startProgram(t, s)
		programs, inputs = append(programs, p), append(inputs, in)
	}
	return programs, inputs
}

// TestAnotherMemberGoesOnWithTheFunctions kills the members of a cluster behind different steps of
// several tasks.
func TestAnotherMemberGoesOnWithTheFunctions(t *testing.T) {
	t.Parallel()
	s := setup{Store: pgtest.DSN(t), Dir: t.TempDir()}
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		s.Tasks = append(s.Tasks, startTask(t, s.Store, "ten", name))
		s.Kills = append(s.Kills, fmt.Sprintf("%s-after-%d", name, 1+2*i))
	}
	programs, _ := startMembers(t, s, 3)
	gone := make(chan *process.Process, len(programs))
	for _, p := range programs {
		go func() { <-p.Done(); gone <- p }()
	}
	killed := 0
	for ended := 0; ended < len(programs); {
		p := <-gone
		if p.Err == nil {
			require.True(t, strings.HasSuffix(p.Said(), strings.Repeat("completed 55 \n", len(names))), p.Said())
			ended++
			continue
		}
		require.ErrorContains(t, p.Err, "killed", p.Said())
		killed++
		s.Name = strings.TrimPrefix(p.Name, "program")
		again, _ := startProgram(t, s)
		go func() { <-again.Done(); gone <- again }()
	}
	for _, point := range s.Kills {
		require.FileExists(t, filepath.Join(s.Dir, point))
	}
	require.Positive(t, killed, "one program may have been at two of the points")
	lines := readLedger(t, s.Dir)
	for _, name := range names {
		requireRecordedOnce(t, lines, name)
	}
}

// TestLateResultOfAFrozenMemberIsRefused freezes a member within a step until another member has
// ended the task.
func TestLateResultOfAFrozenMemberIsRefused(t *testing.T) {
	t.Parallel()
	s := setup{Store: pgtest.DSN(t), Dir: t.TempDir(), Kills: []string{"a-in-5:freeze"}}
	s.Tasks = []string{startTask(t, s.Store, "ten", "a")}
	programs, inputs := startMembers(t, s, 2)
	s.awaitLine(t.Context(), "step5")
	var frozen int
	for _, line := range readLedger(t, s.Dir) {
		if line[0] == "step5" {
			frozen = slices.Index([]string{"m0", "m1"}, line[2])
		}
	}
	require.NoError(t, programs[frozen].Freeze())
	require.NoError(t, programs[1-frozen].Wait(patience))
	_, err := inputs[frozen].Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, programs[frozen].Thaw())
	require.NoError(t, programs[frozen].Wait(patience))

	lines := readLedger(t, s.Dir)
	requireRecordedOnce(t, lines, "a")
	for k := 1; k <= 10; k++ {
		times := 1
		if k == 5 {
			times = 2
		}
		require.Equal(t, times, countLines(lines, fmt.Sprint("step", k)), "step %d", k)
	}
	require.Equal(t, []string{"end", "a", fmt.Sprint("m", frozen)}, lines[len(lines)-1], "the late result ended its function")
}
