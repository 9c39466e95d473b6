package v1_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// as returns a client with a token.
func (s *server) as(token string) *client.Client {
	c, err := client.New(s.base, client.Options{Token: token})
	require.NoError(s, err)
	return c
}

// StatusOf returns the status of the refusal in an error.
func statusOf[T any](_ *T, err error) int {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

func TestAdminsMakeTokensWithRoles(t *testing.T) {
	onBothStores(t, func(s *server) {
		admin := s.as("root")
		made, err := admin.CreateToken(s.Context(), wire.TokenRequest{Name: "ada", Role: "operator", ExpiresInMS: time.Hour.Milliseconds()})
		require.NoError(s, err)
		require.True(s, strings.HasPrefix(made.Secret, "trp_"), made.Secret)
		require.Equal(s, "flag", made.CreatedBy)
		require.WithinDuration(s, time.Now().Add(time.Hour), made.ExpiresAt.Time, time.Minute)
		require.Equal(s, 409, statusOf(admin.CreateToken(s.Context(), wire.TokenRequest{Name: "ada", Role: "viewer"})))
		require.Equal(s, 400, statusOf(admin.CreateToken(s.Context(), wire.TokenRequest{Name: "a b", Role: "viewer"})))
		require.Equal(s, 400, statusOf(admin.CreateToken(s.Context(), wire.TokenRequest{Name: "b", Role: "king"})))

		ada := s.as(made.Secret)
		me, err := ada.Me(s.Context())
		require.NoError(s, err)
		require.Equal(s, wire.Identity{Name: "ada", Role: "operator", NeedsToken: true}, *me)
		_, err = ada.Tokens(s.Context())
		require.ErrorContains(s, err, "this needs the role admin, and the token ada has the role operator")
		_, err = ada.Tasks(s.Context(), client.TaskQuery{})
		require.NoError(s, err)

		list, err := admin.Tokens(s.Context())
		require.NoError(s, err)
		require.Len(s, list.Items, 1)
		require.WithinDuration(s, time.Now(), list.Items[0].LastUsedAt.Time, time.Minute)
		shown := s.send("GET", "/v1/tokens", nil, "Authorization", "Bearer root")
		require.NotContains(s, string(shown.body), made.Secret)

		gone, err := admin.DeleteToken(s.Context(), "ada")
		require.NoError(s, err)
		require.Equal(s, made.ID, gone.ID)
		require.Equal(s, 404, statusOf(admin.DeleteToken(s.Context(), made.ID)))
		require.Equal(s, 401, statusOf(ada.Me(s.Context())))
	}, func(set *settings) { set.Tokens = []string{"root"} })
}

func TestASessionEndsWithItsToken(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"root"} })
	made, err := s.as("root").CreateToken(t.Context(), wire.TokenRequest{Name: "ada", Role: "viewer"})
	require.NoError(t, err)
	opened := s.send("POST", "/v1/session", obj{"token": made.Secret})
	require.Equal(t, 200, opened.status, "%s", opened.body)
	require.JSONEq(t, `{"name":"ada","role":"viewer","needs_token":true}`, string(opened.body))
	cookie, _, _ := strings.Cut(opened.header.Get("Set-Cookie"), ";")
	require.NotContains(t, cookie, made.Secret)
	require.Equal(t, 200, s.send("GET", "/v1/tasks", nil, "Cookie", cookie).status)
	require.Equal(t, 403, s.send("DELETE", "/v1/flows/x", nil, "Cookie", cookie).status)
	require.Equal(t, 401, s.send("GET", "/v1/tasks", nil, "Cookie",
		strings.Replace(cookie, made.ID, "", 1)).status,
		"it is no cookie of the token that the server was started with")

	_, err = s.as("root").DeleteToken(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, 401, s.send("GET", "/v1/tasks", nil, "Cookie", cookie).status)
}

// Otherwise the first token would lock out all callers, or none.
func TestNoTokenIsMadeWhereNoneIsNeeded(t *testing.T) {
	s := start(t)
	_, err := s.as("").CreateToken(t.Context(), wire.TokenRequest{Name: "ada", Role: "viewer"})
	require.Equal(t, 409, statusOf[any](nil, err))
	require.ErrorContains(t, err, "was started without a token")
	require.ErrorContains(t, err, "--token-file")
	require.Equal(t, "admin", s.get("/v1/me")["role"])
}
