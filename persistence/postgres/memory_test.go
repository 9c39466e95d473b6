package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func remembered(m *memory, batch ...persistence.Commit) {
	m.learn(m.now, batch, make([]error, len(batch)))
}

func next(task string, seq int64) *persistence.Commit {
	return &persistence.Commit{Task: task, Seq: seq}
}

func TestWhatIsRemembered(t *testing.T) {
	var m memory
	now := time.Unix(0, 0)
	m.recall(now)
	begun := persistence.Commit{Task: "a", Seq: 1, Create: &persistence.Create{}}
	remembered(&m, begun, *next("b", 7), persistence.Commit{Task: "c", Seq: 3, Columns: &persistence.Columns{Status: "running"}})
	require.True(t, m.follows(next("a", 2)))
	require.False(t, m.follows(next("a", 3)), "a gap")
	require.False(t, m.follows(next("b", 8)), "it may have ended")
	require.True(t, m.follows(next("c", 4)))

	remembered(&m, *next("a", 2), persistence.Commit{Task: "c", Seq: 4, Columns: &persistence.Columns{EndedAt: 1}})
	require.True(t, m.follows(next("a", 3)))
	require.False(t, m.follows(next("c", 5)), "it has ended")

	m.learn(m.now, []persistence.Commit{*next("a", 3)}, []error{persistence.ErrStale})
	require.False(t, m.follows(next("a", 4)))
}

func TestATaskThatIsSilentIsForgotten(t *testing.T) {
	var m memory
	now := time.Unix(0, 0)
	for range 5 {
		now = now.Add(memoryTerm + 1)
		m.recall(now)
		remembered(&m, persistence.Commit{Task: "busy", Seq: 1, Create: &persistence.Create{}})
		require.True(t, m.follows(next("busy", 2)))
	}
	remembered(&m, persistence.Commit{Task: "silent", Seq: 1, Create: &persistence.Create{}})
	m.recall(now.Add(memoryTerm + 1))
	require.True(t, m.follows(next("silent", 2)))
	m.recall(now.Add(2 * (memoryTerm + 1)))
	require.False(t, m.follows(next("silent", 2)))

	remembered(&m, persistence.Commit{Task: "silent", Seq: 1, Create: &persistence.Create{}})
	m.recall(now.Add(9 * memoryTerm))
	require.False(t, m.follows(next("silent", 2)), "nothing was written meanwhile")
}

func TestTheMemoryIsBounded(t *testing.T) {
	var m memory
	for i := range 5 * memorySize {
		m.recall(time.Unix(0, 0))
		remembered(&m, persistence.Commit{Task: fmt.Sprint(i), Seq: 1, Create: &persistence.Create{}})
	}
	require.LessOrEqual(t, len(m.young)+len(m.old), 2*(memorySize+1))
}

func TestABatchOfAnEarlierConnectionTeachesNothing(t *testing.T) {
	var m memory
	at := m.recall(time.Unix(0, 0))
	m.forget()
	m.learn(at, []persistence.Commit{{Task: "a", Seq: 1, Create: &persistence.Create{}}}, []error{nil})
	require.False(t, m.follows(next("a", 2)))
}

func TestABatchOfAnEarlierEraTeachesNothing(t *testing.T) {
	var m memory
	at := m.recall(time.Unix(0, 0))
	require.NotEqual(t, at, m.enter(7))
	m.learn(at, []persistence.Commit{{Task: "a", Seq: 1, Create: &persistence.Create{}}}, []error{nil})
	require.False(t, m.follows(next("a", 2)))
	remembered(&m, persistence.Commit{Task: "a", Seq: 1, Create: &persistence.Create{}})
	m.enter(7)
	require.True(t, m.follows(next("a", 2)), "the era goes on")
	m.enter(8)
	require.False(t, m.follows(next("a", 2)))
}
