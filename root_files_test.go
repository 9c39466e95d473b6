package troupe

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMemberWithoutProgramsDoesNotRevealFilesOfItsHost(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "there.sh"), []byte("#!/bin/sh\n"), 0o755))
	e := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db"})
	answer := func(root, file string) int {
		body, err := json.Marshal(map[string]string{"root": root,
			"yaml": "name: " + filepath.Base(file) + "\ntasks:\n  a: {executor: process, file: " +
				file + "}\n"})
		require.NoError(t, err)
		resp, err := http.Post("http://"+e.cfg.Listen+"/workflows", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	there := answer(dir, "there.sh")
	require.Equal(t, there, answer(dir, "missing.sh"))
	require.Equal(t, there, answer(filepath.Join(dir, "missing"), "there.sh"))
	require.Less(t, there, 300)
}
