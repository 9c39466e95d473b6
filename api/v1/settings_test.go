package v1_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettingsContainNoSecret(t *testing.T) {
	s := start(t, func(set *settings) {
		set.Tokens, set.AllowHosts, set.Grace = []string{"other", "secret"}, []string{"Flows.example"}, 7*time.Second
	})
	require.Equal(t, 401, s.send("GET", "/v1/settings", nil).status)
	got := s.send("GET", "/v1/settings", nil, "Authorization", "Bearer secret")
	require.Equal(t, http.StatusOK, got.status, "%s", got.body)
	require.NotContains(t, string(got.body), "secret")
	require.NotContains(t, string(got.body), "other")

	told, err := s.as("secret").Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, told.Tokens)
	require.False(t, told.TLS)
	require.Equal(t, []string{"flows.example"}, told.AllowHosts)
	require.Empty(t, told.AllowOrigins)
	require.EqualValues(t, 7000, told.GraceMS)
	require.EqualValues(t, 30_000, told.ReadTimeoutMS, "a default is told, too")
	require.Positive(t, told.MaxBody)
}
