package persistence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestFailuresThatDifferOnlyInNumbersAreGrouped(t *testing.T) {
	require.Equal(t, "pay2: card # refused after #.#s: #", persistence.Failure("pay2: card 4711 refused after 1.25s: 7"))
	require.Equal(t, "no answer from #", persistence.Failure("no answer from 42"))
	require.Equal(t, "", persistence.Failure(""))
	long := persistence.Failure(strings.Repeat("ü", 199) + "77" + strings.Repeat("x", 9))
	require.Equal(t, strings.Repeat("ü", 199)+"#", long, "a number that is cut is one, too")
}
