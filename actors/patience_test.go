package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStoreThatIsDownIsAskedAgainEverySecond(t *testing.T) {
	for try := range 1000 {
		require.LessOrEqual(t, storePause(try), time.Second)
	}
}

func TestManyTasksInMemoryAreAskedToRestSooner(t *testing.T) {
	k := newTasks(&Member{cfg: Config{IdleAfter: 3 * time.Second}})
	for i := range manyAwake {
		k.entries[fmt.Sprint(i)] = &entry{}
	}
	require.Equal(t, 3*time.Second, k.patience())
	k.entries["one more"] = &entry{}
	require.Equal(t, time.Second, k.patience())
}
