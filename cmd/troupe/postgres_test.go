package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/pgtest"
)

func TestAMemberOfAnotherClusterIsRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	background(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--log-level", "error")
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--cluster", "other")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "the store belongs to another cluster")
}

func TestSettingsOfAClusterAreRefusedOnSQLite(t *testing.T) {
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+t.TempDir()+"/troupe.db", "--join", "127.0.0.1:8071")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "--join: a store of SQLite is one member's alone")
}
