package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/pgtest"
)

func TestASecondMemberOnPostgresIsRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	background(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--log-level", "error")
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "another member is using this store\nhint: stop that member")
}
