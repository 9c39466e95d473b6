package attack

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(build(m)) }

// build builds the attacked command, then runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-attack-bin-")
	if err == nil {
		err = os.MkdirAll(logs, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "troupe")
	if err := built.Program(binary, "../../../cmd/troupe"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	flag.Parse()
	return pgtest.Main(m)
}
