// Package borders defines which package may import which, and what the pure core may not use. Its
// test checks the module against these rules, so the picture in ARCHITECTURE.md stays true.
//
// Promises: every package of the module has a row in the table, and every import of one of our
// packages is listed there. Libraries that shape a design are imported only where they belong.
// Tests may import anything.
package borders

import (
	"fmt"
	"slices"
	"strings"
)

// module is the path of the root package and the prefix of all other packages.
const module = "github.com/troupe-engine/troupe"

// importRow lists the imports allowed to a package. Names are folders below the module; "." is the
// root package.
type importRow struct {
	pkg  string
	uses []string
}

// table has a row for every package. It omits imports of nested internal folders, because Go itself
// restricts those.
var table = []importRow{
	{"flow/expr", nil},
	{"flow/codec", nil},
	{"flow/types", []string{"flow/expr"}},
	{"flow", []string{"flow/expr", "flow/types", "flow/codec"}},
	{"flow/hook", []string{"flow", "flow/expr", "flow/types"}},
	{"flow/duration", nil},
	{"flow/schedule", []string{"flow/duration"}},
	{"flow/trace", []string{"flow"}},
	{"flow/timeline", []string{"flow"}},
	{"flow/stats", []string{"flow"}},
	{"flow/define", []string{"flow", "flow/duration", "flow/expr", "flow/schedule", "flow/types"}},
	{"flow/compile", []string{"flow", "flow/define", "flow/expr", "flow/schedule", "flow/types"}},
	{"flow/show", []string{"flow", "flow/expr", "flow/types"}}, // compares values
	{"flow/pocketflow", []string{"flow", "flow/expr"}},
	{"flow/dbt", []string{"flow/define", "flow/expr"}},
	{"flow/ork", []string{"flow", "flow/dbt", "flow/define", "flow/expr", "flow/types"}},
	{"persistence", []string{"flow", "flow/define", "flow/compile", "flow/schedule", "flow/stats", "internal/lines"}},
	{"persistence/storetest", []string{"persistence", "persistence/faulty", "persistence/model", "flow", "flow/schedule", "flow/stats"}},
	{"persistence/postgres", []string{"persistence", "flow"}},
	{"persistence/sqlite", []string{"persistence", "flow", "flow/stats"}},
	// reads an SQLite file
	{"persistence/pocketflow", []string{"persistence", "persistence/sqlite", "flow", "flow/define", "flow/pocketflow"}},
	{"persistence/model", []string{"persistence", "flow", "flow/stats"}},
	{"persistence/faulty", []string{"persistence", "flow"}},
	{"persistence/internal/listing", []string{"persistence", "flow", "flow/stats"}},
	{"persistence/internal/lru", nil},
	{"persistence/internal/parts", []string{"persistence", "persistence/internal/listing", "flow"}},
	{"persistence/internal/schema", nil},
	{"engine", []string{"flow", "flow/codec"}},
	{"actors", []string{"engine", "persistence", "flow", "flow/stats", "flow/trace",
		"internal/bounded", "internal/goroutines", "internal/logids", "internal/series", "internal/tenure"}},
	{"cluster", []string{"engine", "persistence", "flow", "flow/codec", "internal/host", "internal/packets"}},
	{"actors/funcs", []string{"job", "flow", "flow/trace", "actors/logs"}},
	{"actors/spans", []string{"actors", "persistence", "flow", "flow/trace"}},
	{"actors/logs", []string{"persistence", "internal/lines"}},
	{"actors/script", []string{"flow", "actors/logs", "internal/child", "internal/lines"}},
	{"actors/schedule", []string{"engine", "persistence", "flow", "flow/schedule", "internal/host"}},
	{"actors/attached", []string{"flow", "flow/trace", "engine", "persistence", "api/wire/attach",
		"internal/host", "internal/lines", "internal/logids", "internal/series"}},
	{"actors/workers", []string{"flow", "flow/trace", "persistence", "internal/bounded", "internal/logids", "internal/series"}},
	{"actors/external", []string{"actors/logs", "flow", "internal/objects", "internal/redact"}},
	{"actors/programs", []string{"flow", "actors/logs", "internal/lines", "internal/program", "job"}},
	{"actors/container", []string{"flow", "flow/expr", "actors/logs", "actors/programs",
		"internal/child", "internal/lines", "internal/logids", "internal/program",
		"internal/redact", "internal/secrets", "internal/tenure", "job"}},
	{"internal/program", []string{"flow", "flow/expr", "internal/child", "internal/redact", "internal/secrets", "job"}},
	{"actors/internal/carry", []string{"flow", "flow/expr", "flow/ork", "flow/trace"}},
	{"internal/redact", nil},
	{"internal/secrets", []string{"flow", "internal/child", "internal/redact"}},
	{"actors/internal/reach", nil},
	{"api/wire", nil},
	{"api/wire/attach", nil},
	{"api/client", []string{"api/wire"}},
	{"api/stream", []string{"engine", "persistence", "flow", "internal/payload"}},
	{"api/graph", []string{"api", "engine", "persistence", "flow", "flow/define", "api/wire", "internal/payload"}},
	// shows clients how a flow differs from theirs
	{"api/pgflow", []string{"api", "api/stream", "engine", "persistence", "flow", "flow/define", "flow/expr", "flow/show", "api/wire"}},
	{"api/ork", []string{"api", "api/stream", "engine", "persistence", "flow", "flow/define",
		"flow/expr", "flow/ork", "flow/schedule", "api/wire"}},
	{"api/v1", []string{"api", "api/stream", "engine", "persistence", "flow", "flow/define",
		"flow/duration", "flow/expr", "flow/hook", "flow/schedule", "flow/show", "flow/stats",
		"flow/timeline", "flow/trace", "flow/types", "api/wire", "internal/bounded", "internal/payload"}},
	{"api/attach", []string{"api", "api/stream", "api/wire/attach", "flow", "internal/packets"}},
	{"api/blackbox", nil}, // tests only
	{"api/internal/printer", []string{"api/wire", "internal/payload"}},
	{"api/ui", nil},
	// The API layer notifies the streams when the server shuts down.
	{"api", []string{"api/stream", "engine", "persistence", "flow", "flow/define", "api/wire",
		"internal/logids", "internal/lines", "internal/payload"}},
	{"job", nil},
	{"worker", []string{"job", "api/client", "api/wire", "api/wire/attach", "internal/lines", "internal/packets"}},
	{"worker/demo", []string{"worker"}},
	{"sdk", nil}, // tests only
	{".", []string{"job", "flow", "flow/define", "flow/trace", "api/client", "engine",
		"persistence", "persistence/postgres", "persistence/sqlite", "actors", "actors/attached",
		"actors/container", "actors/external", "actors/funcs", "actors/logs", "actors/programs",
		"actors/schedule", "actors/script", "actors/spans", "actors/workers", "api", "api/attach",
		"api/graph", "api/ork", "api/pgflow", "api/v1", "api/wire", "cluster", "internal/logids",
		"internal/objects", "internal/payload", "internal/program", "internal/secrets"}},
	{"cmd/troupe-library", nil},
	{"cmd/bench", []string{".", "api/wire", "worker", "flow", "flow/stats", "persistence",
		"internal/garbage", "internal/pgtest", "internal/plot"}},
	{"cmd/troupe", []string{"internal/cli"}},
	{"internal/cli", []string{".", "api/client", "api/ui", "api/wire", "worker", "worker/demo",
		"flow", "flow/define", "flow/compile", "flow/duration", "flow/ork", "flow/schedule",
		"flow/show", "flow/trace", "flow/types", "persistence/pocketflow", "examples/flows",
		"internal/child", "internal/garbage", "internal/objects", "internal/program",
		"internal/lines", "job", "internal/cases", "internal/rehearse", "internal/secrets"}},
	{"examples/cluster", []string{".", "api/client", "api/wire", "worker", "persistence",
		"internal/pgtest", "internal/ports", "internal/process"}},
	{"examples/builder", []string{".", "flow", "flow/define"}},
	{"examples/embedded", []string{"."}},
	{"examples/nightly", []string{".", "api/wire"}},
	{"examples/order", []string{".", "flow/define"}},
	{"examples/flows", []string{"api/client", "api/wire", "flow/define"}},
	{"examples/worker", []string{"worker"}},
	{"internal/certtest", nil},
	{"internal/child", nil},
	{"internal/host", nil},
	{"internal/apigen", nil},
	{"internal/attack", nil}, // tests only
	{"internal/built", nil},
	{"internal/borders", nil},
	{"internal/containerhost", []string{"internal/process"}},
	{"internal/containers", nil}, // tests only
	{"internal/packets", nil},
	{"internal/plot", nil},
	{"internal/ports", nil},
	{"internal/bounded", nil},
	{"internal/garbage", nil},
	{"internal/goroutines", nil},
	{"internal/lines", nil},
	{"internal/logids", []string{"flow", "flow/trace"}},
	{"internal/series", nil},
	{"internal/tenure", nil},
	{"internal/objects", nil},
	{"internal/payload", []string{"internal/objects", "persistence", "flow", "flow/expr"}},
	{"internal/objects/bucketest", []string{"internal/objects"}},
	{"internal/process", nil},
	{"internal/protogen", nil},
	{"internal/testprogress", nil},
	{"internal/tidy", nil},
	{"internal/docgen", []string{"api", "internal/cli"}},
	{"internal/words", []string{"internal/cli"}},
	{"internal/pgtest", []string{"internal/ports"}},
	{"internal/e2e", nil}, // tests only
	{"internal/errands", []string{".", "api/wire", "internal/containerhost", "flow", "flow/schedule", "persistence", "worker"}},
	{"internal/faults", nil}, // tests only
	{"internal/rehearse", []string{"flow", "flow/duration", "flow/expr"}},
	{"internal/cases", []string{"flow", "flow/define", "flow/compile", "flow/expr", "flow/show", "internal/rehearse"}},
	{"troupetest", []string{"job", "flow", "flow/define", "internal/cases", "internal/rehearse"}},
	{"internal/flowtest", []string{"flow", "flow/compile"}},
	{"internal/schedulerdb", nil},
	{"internal/sim", []string{"engine", "actors", "actors/attached", "actors/external",
		"actors/schedule", "api/wire/attach", "cluster", "internal/host", "persistence",
		"persistence/model", "flow", "flow/define", "flow/compile", "flow/expr", "flow/schedule"}},
}

// libraries lists libraries that shape a design. Each is imported only by the package built around
// it. An entry includes all packages of the library.
var libraries = []struct {
	path   string
	usedBy []string
}{
	{"github.com/asynkron/protoactor-go", []string{"actors"}},
	{"github.com/bufbuild/protocompile", []string{"internal/protogen"}},
	{"github.com/hashicorp/memberlist", []string{"cluster"}},
	{"github.com/moby/moby/client", []string{"actors/container"}},
	{"github.com/ebitengine/purego", []string{"cmd/troupe-library"}},
	{"github.com/danielgtaylor/huma/v2", []string{"api/v1"}},
	{"github.com/coder/websocket", []string{"api/ork", "api/v1", "api/client"}},
	{"github.com/google/cel-go", []string{"flow/expr"}},
	{"github.com/go-json-experiment/json", []string{"flow/expr", "api/v1", "worker"}},
	{"github.com/jackc/pgx/v5", []string{".", "persistence/postgres", "internal/...", "cmd/bench"}},
	{"go.opentelemetry.io/otel/exporters", []string{"internal/cli"}},
	{"go.opentelemetry.io/otel/sdk", []string{"internal/cli"}},
	{"go.opentelemetry.io/proto", []string{"internal/cli"}},
	{"modernc.org/sqlite", []string{"persistence/sqlite", "internal/...", "cmd/bench"}},
}

// goPackage is the output of go list for one of our packages.
type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func (p goPackage) localName() string { return localPath(p.ImportPath) }

// listCrossings returns a readable text for every forbidden import of p.
func (p goPackage) listCrossings() []string {
	i := slices.IndexFunc(table, func(r importRow) bool { return r.pkg == p.localName() })
	if i < 0 {
		return []string{fmt.Sprintf("%s has no row in the table of internal/borders: decide what it may import", p.localName())}
	}
	var found []string
	for _, path := range p.Imports {
		if isOurs(path) && !slices.Contains(table[i].uses, localPath(path)) && !strings.Contains(localPath(path), "/internal/") {
			found = append(found, fmt.Sprintf("%s must not import %s", p.localName(), localPath(path)))
		}
		for _, lib := range libraries {
			if isBelow(lib.path, path) && !anyFits(lib.usedBy, p.localName()) {
				found = append(found, fmt.Sprintf("%s must not import %s: only %v may", p.localName(), path, lib.usedBy))
			}
		}
	}
	return found
}

func isOurs(path string) bool { return isBelow(module, path) }

func localPath(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// isBelow reports whether path is root or below it.
func isBelow(root, path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

func anyFits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesPattern(pattern, name) })
}

// matchesPattern reports whether a name equals a pattern, or is below the x of a pattern x/...
func matchesPattern(pattern, name string) bool {
	parent, ok := strings.CutSuffix(pattern, "...")
	if !ok {
		return pattern == name
	}
	return strings.HasPrefix(name, parent)
}
