package persistence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
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
