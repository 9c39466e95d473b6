package ui_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/ui"
)

func get(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	ui.Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

// dist must have been built from the present sources. This check needs no Node.js; `make ui-check`
// proves that the build gives the same bytes.
func TestEmbeddedPagesMatchTheSources(t *testing.T) {
	var names []string
	dir := os.DirFS(".")
	require.NoError(t, fs.WalkDir(dir, "src", func(name string, d fs.DirEntry, err error) error {
		// they contain only types, which leave nothing in dist
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".gen.ts") {
			names = append(names, name)
		}
		return err
	}))
	names = append(names, "index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		one := sha256.Sum256(b)
		fmt.Fprintf(sum, "%s %s\n", hex.EncodeToString(one[:]), name)
	}
	built, err := os.ReadFile("dist/SOURCE")
	require.NoError(t, err, "run make ui")
	require.Equal(t, strings.TrimSpace(string(built)), hex.EncodeToString(sum.Sum(nil)), "dist was built of other sources: run make ui")
}

func TestALinkIntoThePagesIsThePage(t *testing.T) {
	for _, path := range []string{"/ui/", "/ui/tasks", "/ui/tasks/task-7", "/ui/flows/order.v1?v=7"} {
		r := get(t, path)
		require.Equal(t, 200, r.StatusCode, path)
		require.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"), path)
		require.Contains(t, body(t, r), `<div id="root">`, path)
	}
	r := get(t, "/ui/assets/none.js")
	require.Equal(t, 404, r.StatusCode, "a script that is not there is no page")
}

func TestFilesAreCompressedOnceAndKnownByTheirETag(t *testing.T) {
	plain := get(t, "/ui/assets/main.js")
	require.Equal(t, "text/javascript; charset=utf-8", plain.Header.Get("Content-Type"))
	require.Empty(t, plain.Header.Get("Content-Encoding"))
	whole := body(t, plain)

	packed := get(t, "/ui/assets/main.js", "Accept-Encoding", "br, gzip;q=0.8")
	require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
	unpacked, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	var same bytes.Buffer
	_, err = io.Copy(&same, unpacked)
	require.NoError(t, err)
	require.Equal(t, whole, same.String())
	require.Empty(t, get(t, "/ui/assets/main.js", "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding"))

	for _, known := range []string{plain.Header.Get("ETag"), packed.Header.Get("ETag"), `"other", ` + plain.Header.Get("ETag")} {
		again := get(t, "/ui/assets/main.js", "If-None-Match", known)
		require.Equal(t, 304, again.StatusCode)
		require.Empty(t, body(t, again))
	}
	require.Equal(t, 200, get(t, "/ui/assets/main.js", "If-None-Match", `"other"`).StatusCode)
}

func TestPagesMayRunNothingButWhatIsServedHere(t *testing.T) {
	policy := get(t, "/ui/").Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self'")
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "nosniff", get(t, "/ui/").Header.Get("X-Content-Type-Options"))
}

func TestNoFileIsNamedByItsContent(t *testing.T) {
	files, err := os.ReadDir("dist/assets")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.Regexp(t, `^[a-z0-9.-]+$`, f.Name())
		require.NotRegexp(t, `-[A-Za-z0-9_-]{8}\.(js|css)$`, f.Name(), "its name would change with every build")
	}
}
