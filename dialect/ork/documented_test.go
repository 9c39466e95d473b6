package ork

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachFieldOfAFileHasItsPlaceInTheTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/ork.md")
	require.NoError(t, err)
	for _, field := range slices.Concat(workflowFields, taskFields) {
		require.Regexp(t, "(?m)^\\| [^|]*`([a-z]+: \\{)?"+field+"\\b", string(text),
			"a row of docs/reference/ork.md has %s on its left side", field)
	}
}
