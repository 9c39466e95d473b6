package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/flows"
)

func TestFilesThatNeedOthersArePublishedBehindThem(t *testing.T) {
	dir := t.TempDir()
	published := map[string]bool{}
	var out strings.Builder
	f := &flows.Folder{Dir: dir, Out: &out, Publish: func(_ context.Context, slug string, text []byte) (*wire.PublishResult, error) {
		if needs := strings.TrimSpace(string(text)); needs != "" && !published[needs] {
			return nil, errors.New("there is no " + needs)
		}
		published[slug] = true
		return &wire.PublishResult{Flow: wire.Flow{Slug: slug}, Created: true}, nil
	}}
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("a.yaml", "b")
	put("b.yaml", "c")
	put("c.yaml", "")
	put("x.yaml", "late")
	f.PublishChanges(t.Context())
	require.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, published)
	require.Equal(t, 1, strings.Count(out.String(), "there is no"), "what is wrong is told once: %s", out.String())
	put("late.yaml", "")
	put("late.test.yaml", "")
	f.PublishChanges(t.Context())
	require.True(t, published["x"])
	require.False(t, published["late.test"], "cases are no flow")
}

func TestAFolderTakesFilesBesideWorkflowsForNoFlows(t *testing.T) {
	dir := folderWith(t, map[string]string{"ork.yaml": "validation: {enabled: false}\n",
		"workers.yaml": "workers: {}\n", "locations.yaml": "locations: []\n", "w.yaml": orkWorkflow})
	var told strings.Builder
	var slugs []string
	f := &flows.Folder{Dir: dir, Out: &told, Publish: func(_ context.Context, slug string, _ []byte) (*wire.PublishResult, error) {
		slugs = append(slugs, slug)
		return &wire.PublishResult{}, nil
	}}
	f.PublishChanges(t.Context())
	require.Equal(t, []string{"nightly"}, slugs)
	require.NotContains(t, told.String(), "ork.yaml")
}

func TestAFolderPublishesNeitherOfTwoFilesOfOneFlow(t *testing.T) {
	dir := folderWith(t, map[string]string{"a.yaml": oneService, "b.yaml": "name: B\n" + oneService})
	var out strings.Builder
	var published []string
	f := &flows.Folder{Dir: dir, Out: &out, Publish: func(_ context.Context, slug string, text []byte) (*wire.PublishResult, error) {
		published = append(published, slug+" "+string(text[:5]))
		return &wire.PublishResult{}, nil
	}}
	look := func() (slugs []string, told string) {
		out.Reset()
		published = nil
		f.PublishChanges(t.Context())
		return published, out.String()
	}
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	look()
	put("a.json", `{"start":"a","nodes":{"a":{"service":"s"}}}`)
	put("c.yaml", "name: B\n"+oneService)
	slugs, told := look()
	require.Equal(t, []string{"c name:"}, slugs)
	for _, name := range []string{"a.json", "a.yaml"} {
		require.Contains(t, told, filepath.Join(dir, name)+": error: has the same slug a as ")
	}
	require.Contains(t, told, filepath.Join(dir, "c.yaml")+": warning: name: is also the name of the flow in "+filepath.Join(dir, "b.yaml"))
	slugs, told = look()
	require.Empty(t, slugs)
	require.Empty(t, told)
	require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml")))
	slugs, _ = look()
	require.Equal(t, []string{`a {"sta`}, slugs, "the other one is published when its file is the only one")
}
