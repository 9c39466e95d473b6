package api

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestAnOutageOfTheStoreSaysToTryAgain(t *testing.T) {
	err := fmt.Errorf("read a flow: %w", persistence.ErrUnavailable)
	require.Equal(t, http.StatusServiceUnavailable, statusOf(err))
	require.Equal(t, "the store is not available; try again in a moment", textOf(err, statusOf(err)))
}
