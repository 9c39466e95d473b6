package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// newToken returns a token with a name.
func newToken(name string) persistence.Token {
	return persistence.Token{ID: "id-" + name, Name: name, Role: "viewer",
		Hash: []byte("hash of " + name), CreatedAt: 5, CreatedBy: "somebody", ExpiresAt: 9}
}

var tokens = []storeBehavior{
	{"tokens are kept as they were written, in order of name", func(w *testEnv) {
		list, err := w.ListTokens(w.ctx())
		require.NoError(w, err)
		require.Empty(w, list)
		require.NoError(w, w.AddToken(w.ctx(), newToken("b")))
		require.NoError(w, w.AddToken(w.ctx(), newToken("a")))
		list, err = w.ListTokens(w.ctx())
		require.NoError(w, err)
		require.Equal(w, []persistence.Token{newToken("a"), newToken("b")}, list)
	}},
	{"no two tokens have an id, a name or a hash in common", func(w *testEnv) {
		require.NoError(w, w.AddToken(w.ctx(), newToken("a")))
		for _, change := range []func(*persistence.Token){
			func(t *persistence.Token) { t.ID = "id-a" },
			func(t *persistence.Token) { t.Name = "a" },
			func(t *persistence.Token) { t.Hash = []byte("hash of a") },
		} {
			other := newToken("b")
			change(&other)
			require.ErrorIs(w, w.AddToken(w.ctx(), other), persistence.ErrDuplicate)
		}
		require.NoError(w, w.AddToken(w.ctx(), newToken("b")))
	}},
	{"the latest use of a token is known", func(w *testEnv) {
		require.NoError(w, w.AddToken(w.ctx(), newToken("a")))
		require.NoError(w, w.UseToken(w.ctx(), "id-a", 20))
		require.NoError(w, w.UseToken(w.ctx(), "id-a", 10))
		require.NoError(w, w.UseToken(w.ctx(), "unknown", 30))
		list, err := w.ListTokens(w.ctx())
		require.NoError(w, err)
		used := newToken("a")
		used.LastUsedAt = 20
		require.Equal(w, []persistence.Token{used}, list)
	}},
	{"a deleted token is not there, and its name may be given again", func(w *testEnv) {
		require.ErrorIs(w, w.DeleteToken(w.ctx(), "id-a"), persistence.ErrNotFound)
		require.NoError(w, w.AddToken(w.ctx(), newToken("a")))
		require.NoError(w, w.DeleteToken(w.ctx(), "id-a"))
		list, err := w.ListTokens(w.ctx())
		require.NoError(w, err)
		require.Empty(w, list)
		require.NoError(w, w.AddToken(w.ctx(), newToken("a")))
	}},
}
