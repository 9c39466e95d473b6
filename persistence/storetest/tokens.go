package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// token is one with a name.
func token(name string) persistence.Token {
	return persistence.Token{ID: "id-" + name, Name: name, Role: "viewer", Hash: []byte("hash of " + name), CreatedAt: 5, CreatedBy: "somebody", ExpiresAt: 9}
}

var tokens = []behavior{
	{"tokens are kept as they were written, in order of name", func(w *world) {
		list, err := w.ListTokens(w.ctx())
		require.NoError(w, err)
		require.Empty(w, list)
		require.NoError(w, w.AddToken(w.ctx(), token("b")))
		require.NoError(w, w.AddToken(w.ctx(), token("a")))
		list, err = w.ListTokens(w.ctx())
		require.NoError(w, err)
		require.Equal(w, []persistence.Token{token("a"), token("b")}, list)
	}},
	{"no two tokens have an id, a name or a hash in common", func(w *world) {
		require.NoError(w, w.AddToken(w.ctx(), token("a")))
		for _, change := range []func(*persistence.Token){
			func(t *persistence.Token) { t.ID = "id-a" },
			func(t *persistence.Token) { t.Name = "a" },
			func(t *persistence.Token) { t.Hash = []byte("hash of a") },
		} {
			other := token("b")
			change(&other)
			require.ErrorIs(w, w.AddToken(w.ctx(), other), persistence.ErrDuplicate)
		}
		require.NoError(w, w.AddToken(w.ctx(), token("b")))
	}},
	{"the latest use of a token is known", func(w *world) {
		require.NoError(w, w.AddToken(w.ctx(), token("a")))
		require.NoError(w, w.UseToken(w.ctx(), "id-a", 20))
		require.NoError(w, w.UseToken(w.ctx(), "id-a", 10))
		require.NoError(w, w.UseToken(w.ctx(), "unknown", 30))
		list, err := w.ListTokens(w.ctx())
		require.NoError(w, err)
		used := token("a")
		used.LastUsedAt = 20
		require.Equal(w, []persistence.Token{used}, list)
	}},
	{"a deleted token is not there, and its name may be given again", func(w *world) {
		require.ErrorIs(w, w.DeleteToken(w.ctx(), "id-a"), persistence.ErrNotFound)
		require.NoError(w, w.AddToken(w.ctx(), token("a")))
		require.NoError(w, w.DeleteToken(w.ctx(), "id-a"))
		list, err := w.ListTokens(w.ctx())
		require.NoError(w, err)
		require.Empty(w, list)
		require.NoError(w, w.AddToken(w.ctx(), token("a")))
	}},
}
