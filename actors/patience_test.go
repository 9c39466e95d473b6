package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/actors/journal"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAnUnavailableStoreIsRetriedEverySecond(t *testing.T) {
	for try := range 1000 {
		require.LessOrEqual(t, background.StorePause(try), time.Second)
	}
}

func TestATaskIsLoadedSoonAfterAnOutage(t *testing.T) {
	away := fmt.Errorf("load: %w", persistence.ErrUnavailable)
	for try := range 1000 {
		require.LessOrEqual(t, reloadPause(journal.StoreReadError{Err: away}, try), time.Second)
	}
	require.Greater(t, reloadPause(away, 1000), time.Second, "of one task")
}

func TestManyTasksInMemoryAreAskedToRestSooner(t *testing.T) {
	k := newTasks(&Member{cfg: Config{IdleAfter: 3 * time.Second}})
	for i := range manyAwake {
		k.entries[fmt.Sprint(i)] = &taskEntry{}
	}
	require.Equal(t, 3*time.Second, k.idleLimit())
	k.entries["one more"] = &taskEntry{}
	require.Equal(t, time.Second, k.idleLimit())
}

func TestATaskRestsWithASnapshotWhereThatIsWorthIt(t *testing.T) {
	const large = persistence.LargeSnapshot
	for _, tt := range []struct {
		journal, snapshot int
		want              bool
	}{
		{smallJournal - 1, 0, false},
		{smallJournal, 0, true},
		{smallJournal, large - 1, true},
		{smallJournal, large, false}, // each time it rests
		{large - 1, large, false},
		{large, large, true}, // there was no room for its checkpoint
	} {
		task := task{rowState: rowState{journal: tt.journal, snapshot: tt.snapshot}}
		require.Equal(t, tt.want, taskJournal{&task}.restsWithSnapshot(), "%d bytes of rows behind %d", tt.journal, tt.snapshot)
	}
}
