package api_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api"
)

// Routes for viewers are not listed individually.
func TestTheDocumentationListsThePermissionsOfRoles(t *testing.T) {
	text, err := os.ReadFile("../docs/how-to/access.md")
	require.NoError(t, err)
	told := map[string][]api.Role{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|.*$").FindAllStringSubmatch(string(text), -1) {
		for _, id := range regexp.MustCompile("`([a-z]+(?:-[a-z]+)+)`").FindAllStringSubmatch(row[0], -1) {
			told[id[1]] = append(told[id[1]], api.Role(row[1]))
		}
	}
	for id, o := range serveAll(t).operations(t) {
		if len(o.Roles) == 0 || slices.Contains(o.Roles, api.Viewer) && told[id] == nil {
			continue
		}
		want := []api.Role{o.Roles[0]}
		if slices.Contains(o.Roles, api.Worker) && o.Roles[0] != api.Worker {
			want = append(want, api.Worker)
		}
		require.Equal(t, want, told[id], id)
		delete(told, id)
	}
	for id, roles := range told {
		require.Contains(t, []string{"validate-definition", "preview-schedule"}, id, roles)
	}
}
