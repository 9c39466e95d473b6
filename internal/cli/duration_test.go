package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagsRefuseWhatNoDurationCanKeep(t *testing.T) {
	require.Equal(t, exitUsage, call(t, "serve", "--lease", "500us").code, "it would be none")
	got := call(t, "serve", "--retention", "soon")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "1d12h")
}
