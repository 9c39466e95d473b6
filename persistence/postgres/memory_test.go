package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func remembered(m *lastRowCache, batch ...persistence.Commit) {
	m.recordBatch(m.now, batch, make([]error, len(batch)))
}

func next(task string, seq int64) *persistence.Commit {
	return &persistence.Commit{Task: task, Seq: seq}
}

func TestLastRowsAreRemembered(t *testing.T) {
	var m lastRowCache
	now := time.Unix(0, 0)
	m.beginBatch(now)
	begun := persistence.Commit{Task: "a", Seq: 1, Create: &persistence.Create{}}
	remembered(&m, begun, *next("b", 7), persistence.Commit{Task: "c", Seq: 3, Columns: &persistence.Columns{Status: "running"}})
	require.True(t, m.hasPrevious(next("a", 2)))
	require.False(t, m.hasPrevious(next("a", 3)), "a gap")
	require.False(t, m.hasPrevious(next("b", 8)), "it may have ended")
	require.True(t, m.hasPrevious(next("c", 4)))

	remembered(&m, *next("a", 2), persistence.Commit{Task: "c", Seq: 4, Columns: &persistence.Columns{EndedAt: 1}})
	require.True(t, m.hasPrevious(next("a", 3)))
	require.False(t, m.hasPrevious(next("c", 5)), "it has ended")

	m.recordBatch(m.now, []persistence.Commit{*next("a", 3)}, []error{persistence.ErrStale})
	require.False(t, m.hasPrevious(next("a", 4)))
}

func TestATaskThatIsSilentIsForgotten(t *testing.T) {
	var m lastRowCache
	now := time.Unix(0, 0)
	for range 5 {
		now = now.Add(memoryTerm + 1)
		m.beginBatch(now)
		remembered(&m, persistence.Commit{Task: "busy", Seq: 1, Create: &persistence.Create{}})
		require.True(t, m.hasPrevious(next("busy", 2)))
	}
	remembered(&m, persistence.Commit{Task: "silent", Seq: 1, Create: &persistence.Create{}})
	m.beginBatch(now.Add(memoryTerm + 1))
	require.True(t, m.hasPrevious(next("silent", 2)))
	m.beginBatch(now.Add(2 * (memoryTerm + 1)))
	require.False(t, m.hasPrevious(next("silent", 2)))

	remembered(&m, persistence.Commit{Task: "silent", Seq: 1, Create: &persistence.Create{}})
	m.beginBatch(now.Add(9 * memoryTerm))
	require.False(t, m.hasPrevious(next("silent", 2)), "nothing was written meanwhile")
}

func TestTheMemoryIsBounded(t *testing.T) {
	var m lastRowCache
	for i := range 5 * memorySize {
		m.beginBatch(time.Unix(0, 0))
		remembered(&m, persistence.Commit{Task: fmt.Sprint(i), Seq: 1, Create: &persistence.Create{}})
	}
	require.LessOrEqual(t, len(m.young)+len(m.old), 2*(memorySize+1))
}

func TestABatchOfAnEarlierConnectionIsNotRemembered(t *testing.T) {
	var m lastRowCache
	at := m.beginBatch(time.Unix(0, 0))
	m.forgetAll()
	m.recordBatch(at, []persistence.Commit{{Task: "a", Seq: 1, Create: &persistence.Create{}}}, []error{nil})
	require.False(t, m.hasPrevious(next("a", 2)))
}

func TestABatchOfAnEarlierEraIsNotRemembered(t *testing.T) {
	var m lastRowCache
	at := m.beginBatch(time.Unix(0, 0))
	require.NotEqual(t, at, m.enterEra(7))
	m.recordBatch(at, []persistence.Commit{{Task: "a", Seq: 1, Create: &persistence.Create{}}}, []error{nil})
	require.False(t, m.hasPrevious(next("a", 2)))
	remembered(&m, persistence.Commit{Task: "a", Seq: 1, Create: &persistence.Create{}})
	m.enterEra(7)
	require.True(t, m.hasPrevious(next("a", 2)), "the era goes on")
	m.enterEra(8)
	require.False(t, m.hasPrevious(next("a", 2)))
}
