package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOrderedTextsSortLikeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		require.Equal(t, a < b, string(appendOrdered(nil, a)) < string(appendOrdered(nil, b)))
	})
}
