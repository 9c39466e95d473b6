package persistence_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// keep stores definitions as versions of a flow, unchecked.
func keep(t testing.TB, store persistence.Store, definitions ...string) (versions []string) {
	t.Helper()
	require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f", Slug: "slug"}))
	for i, definition := range definitions {
		v := persistence.Version{ID: "v" + string(rune('a'+i)), FlowID: "f", Definition: []byte(definition), Status: "published"}
		require.NoError(t, store.CreateVersion(t.Context(), v))
		versions = append(versions, v.ID)
	}
	return versions
}

func TestAVersionThatWouldBeRefusedTodayHasItsPlan(t *testing.T) {
	store := model.New(model.Options{})
	versions := keep(t, store,
		`{"start":"a","nodes":{"a":{"kind":"parallel","parallel_services":["x","y","z"]}}}`,
		`{"start":"a","nodes":{"a":{"service":"s","post":{"output_key":"_rt"}}}}`,
		`{"start":"a","nodes":{"a":{"service":"s","max_retries":"many"}}}`)
	reader := persistence.NewReader(store, flow.Limits{Depth: 1, Units: 1})
	for _, version := range versions {
		plan, err := reader.Plan(t.Context(), version)
		require.NoError(t, err)
		require.Equal(t, "f", plan.FlowID)
		require.Equal(t, "slug", plan.FlowSlug)
	}
}

// counting counts the reads of versions.
type counting struct {
	persistence.Store
	reads atomic.Int64
}

func (c *counting) Version(ctx context.Context, id string) (*persistence.Version, error) {
	c.reads.Add(1)
	return c.Store.Version(ctx, id)
}

// wide returns a flow of n nodes.
func wide(n int) string {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = fmt.Sprintf(`"n%d":{"service":"s"}`, i)
	}
	return `{"mode":"dag","nodes":{` + strings.Join(nodes, ",") + `}}`
}

func TestPlansAreKeptUpToABoundOfBytes(t *testing.T) {
	store := &counting{Store: model.New(model.Options{})}
	large := wide(10_000) // 10 MB each
	versions := keep(t, store, wide(1), large, large, large, large, large, large, large, large)
	reader := persistence.NewReader(store, flow.Limits{})
	use := func(version string) {
		_, err := reader.Plan(t.Context(), version)
		require.NoError(t, err)
	}
	for _, version := range versions {
		use(version)
		use(versions[0])
	}
	require.EqualValues(t, len(versions), store.reads.Load(), "what is in use stays")
	use(versions[len(versions)-1])
	require.EqualValues(t, len(versions), store.reads.Load(), "so does what was used last")
	use(versions[1])
	require.EqualValues(t, len(versions)+1, store.reads.Load(), "what was not used for longest has gone")
}

func TestTheMemoryOfPlansIsBounded(t *testing.T) {
	store := model.New(model.Options{})
	large := wide(20_000)
	versions := keep(t, store, large, large, large, large, large, large, large, large)
	reader := persistence.NewReader(store, flow.Limits{})
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for _, version := range versions {
		_, err := reader.Plan(t.Context(), version)
		require.NoError(t, err)
	}
	require.Less(t, live()-before, uint64(80<<20))
	runtime.KeepAlive(reader)
}
