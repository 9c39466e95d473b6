//go:build unix

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(runRole(role))
	}
	os.Exit(pgtest.Main(m))
}

func TestOneOfThreeMembersIsKilled(t *testing.T) {
	var told bytes.Buffer
	require.NoError(t, runExample(t.Context(), &told, pgtest.DSN(t)), &told)
	t.Log("\n" + told.String())
	require.Equal(t, 10, strings.Count(told.String(), "\n"))
	require.Regexp(t, `Nothing was lost.*: the worker carried out 600 jobs`, told.String())
}
