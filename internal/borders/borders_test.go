package borders

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// packages returns the output of go list. The flag -e tolerates packages that do not build, which
// the compiler reports.
func packages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports", module+"/...")
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
	all := packages(t)
	require.True(t, slices.ContainsFunc(all, func(p goPackage) bool { return p.localName() == "internal/borders" }))
	for _, p := range all {
		for _, crossing := range p.listCrossings() {
			t.Error(crossing)
		}
	}
}

func TestTheCoreIsPure(t *testing.T) {
	for _, p := range packages(t) {
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
			"persistence/postgres", module + "/internal/pgtest", []string{"persistence/postgres must not import internal/pgtest"},
		},
		"an internal folder of neighbors":    {"persistence/postgres", module + "/persistence/internal/x", nil},
		"the actor library where it belongs": {"actors", "github.com/asynkron/protoactor-go/actor", nil},
		"the actor library elsewhere": {
			"api", "github.com/asynkron/protoactor-go/actor",
			[]string{"api must not import github.com/asynkron/protoactor-go/actor: only [actors] may"},
		},
		"a package nobody has thought about": {
			"util", "fmt", []string{"util has no row in the table of internal/borders: decide what it may import"},
		},
		"a tool may use everything": {"internal/sim", module + "/actors", nil},
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
