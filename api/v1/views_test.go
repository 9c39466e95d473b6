package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
)

func TestListsOfTasksHaveNames(t *testing.T) {
	onBothStores(t, func(s *server) {
		require.Empty(t, items(s.get("/v1/views")))
		c, err := client.New(s.base, client.Options{})
		require.NoError(t, err)
		_, err = c.SetView(t.Context(), "of late / failed", "state=failed&since=24h")
		require.NoError(t, err)
		s.call(200, "PUT", "/v1/views/mine", obj{"query": "label=customer%3Aada"})
		s.call(200, "PUT", "/v1/views/mine", obj{"query": "label=customer%3Abo"})
		list, err := c.Views(t.Context())
		require.NoError(t, err)
		require.Len(t, list.Items, 2)
		require.Equal(t, []string{"mine", "label=customer%3Abo"}, []string{list.Items[0].Name, list.Items[0].Query})
		gone, err := c.DeleteView(t.Context(), "of late / failed")
		require.NoError(t, err)
		require.Equal(t, "state=failed&since=24h", gone.Query)
		require.Len(t, items(s.get("/v1/views")), 1)

		s.call(404, "DELETE", "/v1/views/nope", nil)
		require.Equal(t, "path.view", s.call(400, "PUT", "/v1/views/%20mine", obj{"query": ""})["field"])
		require.Equal(t, "body.query", s.call(400, "PUT", "/v1/views/odd", obj{"query": "a=%zz"})["field"])
		require.Equal(t, "path.view", s.call(400, "PUT", "/v1/views/"+strings.Repeat("x", 81), obj{"query": ""})["field"])
	})
}
