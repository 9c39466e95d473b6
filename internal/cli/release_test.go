package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// release builds the binary of this platform and returns its path and the checksums.
func release(t *testing.T) (file, sums string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("../../scripts/release.sh", dir)
	cmd.Env = append(os.Environ(), "CLOUD=no", "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH,
		"VERSION=v1.2.3", "COMMIT=0123456789abcdef", "DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	return filepath.Join(dir, "troupe_v1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH), string(text)
}

func TestAReleaseIsReproducibleAndReportsItsVersion(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the script needs bash
	}
	file, sums := release(t)
	out, err := exec.Command(file, "version").Output()
	require.NoError(t, err)
	require.Equal(t, "troupe v1.2.3 "+runtime.GOOS+"/"+runtime.GOARCH+" "+runtime.Version()+
		", commit 0123456789abcdef of 2026-01-02T03:04:05Z\n", string(out))
	library := strings.Replace(filepath.Base(file), "troupe_", "troupe-library_", 1)
	require.Regexp(t, `^[0-9a-f]{64}  `+library+`\n[0-9a-f]{64}  `+filepath.Base(file)+`\n$`, sums)
	_, again := release(t)
	require.Equal(t, sums, again)
}

func TestAProgramWithoutACommitReportsThat(t *testing.T) {
	// of the test's own program, for which Go records no commit, as with go run
	got := call(t, "version")
	require.Equal(t, "troupe devel "+runtime.GOOS+"/"+runtime.GOARCH+" "+runtime.Version()+
		", built from source, commit unknown\n", got.stdout)
}
