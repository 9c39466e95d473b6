package troupe

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// byLink sends a request about an approval with a link and without a token.
func (e *Engine) byLink(t *testing.T, method, approval, link, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.cfg.Listen+"/v1/approve/"+approval, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Troupe-Link", link)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestAnApprovalLinkWorksOnAllMembersOfItsClusterOnly(t *testing.T) {
	store, tokens := pgtest.DSN(t), []string{"secret"}
	a, b := serving(t, Config{Store: store, Name: "a", Tokens: tokens}), serving(t, Config{Store: store, Name: "b", Tokens: tokens})
	other := serving(t, Config{Store: pgtest.DSN(t), Name: "c", Tokens: tokens})
	shared(t, a, b)
	require.NoError(t, a.Publish(t.Context(), "ask",
		[]byte("start: ask\nnodes:\n  ask: {kind: approval, params: {approval_key: $shared.ok, "+
			"title: 'Ship it?'}}\n")))
	owners := map[string]bool{}
	for range 100 { // until each member has had a task
		id, err := a.Start(t.Context(), "ask", nil)
		require.NoError(t, err)
		var approval string
		require.Eventually(t, func() bool {
			list, err := a.Approvals(t.Context(), ApprovalQuery{Text: id})
			require.NoError(t, err)
			if len(list.Items) == 1 {
				approval = list.Items[0].ID
			}
			return approval != ""
		}, 20*time.Second, 10*time.Millisecond)
		link, err := a.LinkApproval(t.Context(), approval, ApprovalNewLink{Name: "Bo"})
		require.NoError(t, err)

		status, _ := b.byLink(t, "GET", approval, "", "")
		require.Equal(t, http.StatusUnauthorized, status, "without a link")
		status, _ = other.byLink(t, "GET", approval, link.Token, "")
		require.Equal(t, http.StatusUnauthorized, status, "in another cluster")
		status, question := b.byLink(t, "GET", approval, link.Token, "")
		require.Equal(t, http.StatusOK, status, question)
		require.Contains(t, question, "Ship it?")
		status, answer := b.byLink(t, "POST", approval, link.Token, `{"action":"approved"}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, answer, `"answered_by":"Bo"`)
		end, err := a.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Empty(t, end.Error)
		cluster, err := a.stores.Newest.Cluster(t.Context())
		require.NoError(t, err)
		if owners[cluster.Owners[persistence.ShardOf(id)]] = true; len(owners) == 2 {
			return
		}
	}
	t.Fatal("all tasks were of one member")
}
