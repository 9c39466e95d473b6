package borders

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// listPackages returns the output of go list. The flag -e tolerates packages that do not build,
// which the compiler reports.
func listPackages(t *testing.T, env ...string) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports", module+"/...")
	list.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	require.NoError(t, err, stderr.String())
	var all []goPackage
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

func TestNoPackageCrossesABorder(t *testing.T) {
	all := listPackages(t)
	require.True(t, slices.ContainsFunc(all, func(p goPackage) bool { return p.localName() == "internal/tools/borders" }))
	for _, p := range all {
		for _, crossing := range p.listCrossings() {
			t.Error(crossing)
		}
	}
}

// TestEveryRuleIsInUse finds rows without a package, and grants that no package needs anymore. Some
// grants are for files of one system only, so the test is about the same system everywhere.
func TestEveryRuleIsInUse(t *testing.T) {
	all := listPackages(t, "GOOS=linux")
	imports := func(pattern, root string, below bool) bool {
		return slices.ContainsFunc(all, func(p goPackage) bool {
			return matchesPattern(pattern, p.localName()) && slices.ContainsFunc(p.Imports, func(path string) bool {
				return path == root || below && isBelow(root, path)
			})
		})
	}
	for _, row := range table {
		exists := slices.ContainsFunc(all, func(p goPackage) bool { return p.localName() == row.pkg })
		require.True(t, exists, "the table has a row for %s, which is no package", row.pkg)
		for _, used := range row.uses {
			require.True(t, imports(row.pkg, fullPath(used), false), "%s may import %s, and does not", row.pkg, used)
		}
	}
	for _, lib := range libraries {
		for _, pattern := range lib.usedBy {
			require.True(t, imports(pattern, lib.path, true), "%s may import %s, and does not", pattern, lib.path)
		}
	}
	for _, pkg := range pure {
		exists := slices.ContainsFunc(all, func(p goPackage) bool { return p.localName() == pkg })
		require.True(t, exists, "%s is to be pure, and is no package", pkg)
	}
}

// fullPath is the inverse of localPath.
func fullPath(local string) string {
	if local == "." {
		return module
	}
	return module + "/" + local
}

func TestTheCoreIsPure(t *testing.T) {
	for _, p := range listPackages(t) {
		if !slices.Contains(pure, p.localName()) {
			continue
		}
		found, err := p.listImpurities()
		require.NoError(t, err)
		for _, impurity := range found {
			t.Error(impurity)
		}
	}
}

func TestCrossingsAreDetected(t *testing.T) {
	for name, tt := range map[string]struct {
		pkg, imports string
		want         []string
	}{
		"a granted import":             {"actors", module + "/persistence", nil},
		"the standard library":         {"actors", "net/http", nil},
		"the core looks outside":       {"flow", module + "/persistence", []string{"flow must not import persistence"}},
		"a worker looks into a member": {"worker", module + "/actors", []string{"worker must not import actors"}},
		"nobody imports the root below it": {
			"api", module, []string{"api must not import ."},
		},
		"a test tool in the product": {
			"persistence/postgres", module + "/internal/testing/pgtest",
			[]string{"persistence/postgres must not import internal/testing/pgtest"},
		},
		"an internal folder of neighbors":    {"persistence/postgres", module + "/persistence/internal/x", nil},
		"the actor library where it belongs": {"actors", "github.com/asynkron/protoactor-go/actor", nil},
		"the actor library elsewhere": {
			"api", "github.com/asynkron/protoactor-go/actor",
			[]string{"api must not import github.com/asynkron/protoactor-go/actor: only [actors actors/journal] may"},
		},
		"a package nobody has thought about": {
			"util", "fmt", []string{"util has no row in the table of internal/tools/borders: decide what it may import"},
		},
		"a tool may use everything": {"internal/testing/sim", module + "/actors", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := goPackage{ImportPath: module + "/" + tt.pkg, Imports: []string{tt.imports}}
			require.Equal(t, tt.want, p.listCrossings())
		})
	}
}

func TestImpureCodeIsDetected(t *testing.T) {
	for name, tt := range map[string]struct {
		src  string
		want int
	}{
		"durations and given times are fine": {`import "time"; var d = time.Second; func f(t time.Time) time.Time { return t.Add(d) }`, 0},
		"the clock":                          {`import "time"; var x = time.Now()`, 1},
		"the clock as a value":               {`import "time"; var now = time.Now`, 1},
		"the clock under another name":       {`import t "time"; var x = t.Now()`, 1},
		"a method called Now is not it":      {`type c struct{}; func (c) Now() {}; func f(time c) { time.Now() }`, 0},
		"a goroutine":                        {`func f() { go f() }`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := impureCode("x.go", "package x; "+tt.src)
			require.NoError(t, err)
			require.Len(t, found, tt.want, "%v", found)
		})
	}
	p := goPackage{ImportPath: module + "/flow", Imports: []string{"strings", "net/url", "os", "net/http", "math/rand/v2", "sync/atomic"}}
	found, err := p.listImpurities()
	require.NoError(t, err)
	require.Len(t, found, 4, "%v", found)
}
