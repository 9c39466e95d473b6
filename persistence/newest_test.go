package persistence_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestTheNewestVersionIsKnownAsSoonAsItIsPublished(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	store = persistence.Newest(store)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 { // they fill the memory at every moment
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = store.FindVersion(t.Context(), "f", 0) // at first there is none
				}
			}
		})
	}
	for i := 1; i <= 50; i++ {
		id := fmt.Sprint("v", i)
		require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: id, FlowID: "f", Number: i, Status: "published", Definition: []byte("{}")}))
		v, err := store.FindVersion(t.Context(), "f", 0)
		require.NoError(t, err)
		require.Equal(t, id, v.ID)
	}
	close(done)
	readers.Wait()
}
