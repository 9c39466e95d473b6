package persistence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestTheSameDefinitionPublishedAtOnceIsOneVersion(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	p := persistence.Publication{Slug: "orders", Definition: []byte("start: a\nnodes: {a: {service: s}}\n"), Now: 1}
	publish := func() (ids map[string]bool, created int) {
		ids = map[string]bool{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				published, err := persistence.Publish(t.Context(), store, p)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				ids[published.Version.ID] = true
				if published.Created {
					created++
				}
			})
		}
		all.Wait()
		return ids, created
	}
	first, created := publish()
	require.Len(t, first, 1)
	require.Equal(t, 1, created)
	p.Definition = []byte("start: b\nnodes: {b: {service: s}}\n")
	second, created := publish()
	require.Len(t, second, 1)
	require.Equal(t, 1, created)
	require.NotEqual(t, first, second)
}

func TestOneOfSeveralPublicationsAfterTheSameVersionWins(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	for after := range 3 {
		var published, overtaken atomic.Int64
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				definition := fmt.Sprintf("start: a\nnodes: {a: {service: s-%d-%d}}\n", after, i)
				done, err := persistence.Publish(t.Context(), store,
					persistence.Publication{Slug: "orders", Definition: []byte(definition), After: &after})
				switch {
				case errors.Is(err, persistence.ErrOvertaken):
					overtaken.Add(1)
				case err == nil && done.Created:
					published.Add(1)
				default:
					t.Error(done, err)
				}
			})
		}
		all.Wait()
		require.Equal(t, []int64{1, 9}, []int64{published.Load(), overtaken.Load()})
	}
}

func TestADefinitionIsRefusedWithAllItsProblems(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	_, err = persistence.Publish(t.Context(), store, persistence.Publication{Slug: "orders",
		Definition: []byte("start: x\nnodes: {a: {kind: fancy}}\n")})
	var problems definition.Problems
	require.ErrorAs(t, err, &problems)
	require.GreaterOrEqual(t, len(problems), 2)
	_, err = persistence.Publish(t.Context(), store, persistence.Publication{Slug: "orders",
		Definition: []byte("start: x\nnodes: {a: {service: s, max_retries: many}}\n")})
	require.ErrorContains(t, err, "max_retries", "of the text")
	require.ErrorContains(t, err, `unknown node "x"`, "and of what it says")
	_, err = store.FlowBySlug(t.Context(), "orders")
	require.ErrorIs(t, err, persistence.ErrNotFound, "nothing is half-applied")
	_, err = persistence.Publish(t.Context(), store, persistence.Publication{Slug: "No Slug", Definition: []byte("{}")})
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
}

func TestVersionNamesItsProfile(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	publish := func(definition, profile string) (string, bool) {
		published, err := persistence.Publish(t.Context(), store,
			persistence.Publication{Slug: "orders", Definition: []byte(definition), Profile: profile})
		require.NoError(t, err)
		return string(published.Version.Definition), published.Created
	}
	kept, _ := publish("start: a\nnodes: {a: {service: s}}\n", "")
	require.JSONEq(t, `{"profile":"troupe","start":"a","nodes":{"a":{"service":"s"}}}`, kept)
	_, created := publish(kept, definition.ProfilePocketflow)
	require.False(t, created, "it means the same, whoever publishes it")
	kept, _ = publish(`{"start":"a","nodes":{"a":{"service":"s"}}}`, definition.ProfilePocketflow)
	require.JSONEq(t, `{"profile":"pocketflow","start":"a","nodes":{"a":{"service":"s"}}}`, kept)
	kept, _ = publish(`{"mode":"dag","nodes":{"a":{"service":"s"}}}`, definition.ProfilePocketflow)
	require.JSONEq(t, `{"mode":"dag","nodes":{"a":{"service":"s"}}}`, kept, "a dag has the default of its profile")
}

func TestADefinitionThatIsReadAndSentBackIsTheSameVersion(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	p := persistence.Publication{Slug: "orders", Definition: []byte("start: a\nnodes: {a: {service: s}}\n"), Now: 1}
	published, err := persistence.Publish(t.Context(), store, p)
	require.NoError(t, err)
	require.True(t, published.Created)
	v := published.Version
	var compact, indented bytes.Buffer
	require.NoError(t, json.Compact(&compact, v.Definition))
	require.NoError(t, json.Indent(&indented, v.Definition, "", "  "))
	for _, p.Definition = range [][]byte{v.Definition, compact.Bytes(), indented.Bytes()} {
		again, err := persistence.Publish(t.Context(), store, p)
		require.NoError(t, err)
		require.False(t, again.Created)
		require.Equal(t, v.ID, again.Version.ID)
	}
}
