// Package borders defines which package may import which, and which packages the pure core must not
// use. Its test checks the module against these rules, so the picture in ARCHITECTURE.md stays
// true.
//
// Promises: every package of the module has a row in the table, and every import of a package of
// this module is listed there. Libraries that shape a design are imported only where they belong.
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
// restricts these imports.
var table = []importRow{
	{"flow/expr", nil},
	{"flow/codec", nil},
	{"flow/types", []string{"flow/expr"}},
	{"flow", []string{"flow/expr", "flow/types", "flow/codec"}},
	{"flow/unitid", []string{"flow"}},
	{"flow/hook", []string{"flow", "flow/expr", "flow/types"}},
	{"flow/duration", nil},
	{"flow/schedule", []string{"flow/duration"}},
	{"flow/trace", []string{"flow"}},
	{"flow/timeline", []string{"flow"}},
	{"flow/stats", []string{"flow"}},
	{"definition", []string{"flow", "flow/duration", "flow/expr", "flow/schedule", "flow/types"}},
	{"definition/define", []string{"definition", "flow", "flow/expr"}},
	{"definition/compile", []string{"flow", "definition", "flow/expr", "flow/schedule",
		"flow/types"}},
	// compares values
	{"definition/show", []string{"flow", "flow/expr", "flow/types"}},
	{"persistence", []string{"flow", "definition", "definition/compile", "flow/schedule",
		"flow/stats", "internal/lines"}},
	{"persistence/postgres", []string{"persistence", "flow"}},
	{"persistence/sqlite", []string{"persistence", "flow", "flow/stats"}},
	{"persistence/internal/listing", []string{"persistence", "flow", "flow/stats"}},
	{"persistence/internal/lru", nil},
	{"persistence/internal/parts", []string{"persistence", "persistence/internal/listing", "flow"}},
	{"persistence/internal/schema", nil},
	{"engine", []string{"flow", "flow/codec"}},
	{"actors/background", []string{"flow", "internal/host"}},
	{"actors/shards", []string{"persistence"}},
	{"actors/lease", []string{"actors/background", "engine", "persistence", "flow", "internal/host"}},
	{"actors/journal", []string{"actors/background", "persistence", "flow"}},
	{"actors/limiter", []string{"actors/background", "engine", "persistence", "flow"}},
	{"actors/externals", []string{"actors/background", "engine", "persistence", "flow", "internal/logids"}},
	{"actors/forward", []string{"actors/background", "engine", "persistence", "flow"}},
	{"actors/chores", []string{"actors/background", "persistence"}},
	{"actors/wakes", []string{"actors/background", "persistence"}},
	{"actors/values", []string{"actors/background", "persistence", "flow"}},
	{"actors/metrics", []string{"actors/background", "persistence", "flow", "flow/stats", "flow/trace",
		"internal/series"}},
	{"actors", []string{"actors/background", "actors/chores", "actors/externals", "actors/forward",
		"actors/journal", "actors/lease", "actors/limiter", "actors/metrics", "actors/shards", "actors/values",
		"actors/wakes", "carriers", "engine", "persistence", "flow", "flow/trace",
		"internal/bounded", "internal/goroutines", "internal/host", "internal/logids",
		"internal/tenure"}},
	{"cluster/gossip", nil},
	{"cluster", []string{"engine", "persistence", "flow", "flow/codec", "internal/host",
		"internal/packets"}},
	{"carriers/functions", []string{"carriers", "job", "flow", "flow/trace", "carriers/logs",
		"carriers/streams", "internal/conversation", "internal/flowfuncs", "internal/streambuffer"}},
	{"member/expected", []string{"engine", "flow", "persistence"}},
	{"member/inprocess", []string{"internal/payload"}},
	{"member/membership", []string{"actors", "api/transport", "api/wire", "cluster",
		"cluster/gossip", "flow", "persistence"}},
	{"member/news", []string{"carriers/workers", "cluster", "engine", "persistence"}},
	{"member/layers", []string{"flow", "persistence", "persistence/postgres", "persistence/sqlite",
		"internal/objects", "internal/payload"}},
	{"member/spans", []string{"actors", "persistence", "flow", "flow/trace"}},
	{"carriers/logs", []string{"persistence", "internal/lines"}},
	{"carriers/streams", []string{"internal/streambuffer", "persistence"}},
	{"carriers/scripts", []string{"carriers", "flow", "carriers/logs", "internal/child",
		"internal/lines"}},
	{"member/schedules", []string{"engine", "persistence", "flow", "flow/schedule",
		"internal/host"}},
	{"carriers/attached", []string{"carriers", "flow", "flow/trace", "engine", "persistence",
		"api/wire/attach", "internal/host", "internal/lines", "internal/logids",
		"internal/series"}},
	{"carriers/workers", []string{"carriers", "flow", "flow/trace", "persistence",
		"internal/bounded", "internal/logids", "internal/series"}},
	{"carriers/external", []string{"carriers", "carriers/logs", "flow", "internal/objects",
		"internal/redact"}},
	{"carriers/programs", []string{"carriers", "flow", "carriers/logs", "internal/lines",
		"internal/program", "job"}},
	{"carriers/containers", []string{"carriers", "flow", "flow/expr", "carriers/logs",
		"carriers/programs", "internal/child", "internal/lines", "internal/logids",
		"internal/program", "internal/redact", "internal/secrets", "internal/tenure", "job"}},
	{"internal/program", []string{"flow", "flow/expr", "internal/child", "internal/redact",
		"internal/secrets", "job"}},
	{"carriers", []string{"flow", "flow/expr", "flow/unitid", "flow/trace"}},
	{"internal/redact", nil},
	{"internal/secrets", []string{"flow", "internal/child", "internal/redact"}},
	{"carriers/internal/reach", nil},
	{"api/wire", nil},
	{"api/wire/attach", nil},
	{"api/client", []string{"api/wire"}},
	{"api/stream", []string{"engine", "flow", "internal/payload"}},
	{"api/transport", nil},
	{"api/v1/route", []string{"api", "api/printer", "api/stream", "api/wire", "definition", "flow",
		"flow/hook", "flow/schedule", "flow/types", "internal/payload"}},
	{"api/v1/catalog", []string{"api", "api/v1/route", "api/wire", "flow", "persistence"}},
	{"api/v1/render", []string{"api/wire", "flow", "flow/expr", "flow/trace", "internal/payload",
		"persistence"}},
	{"api/v1/tasks", []string{"api", "api/v1/catalog", "api/v1/render", "api/v1/route",
		"api/v1/work", "api/wire", "engine", "flow", "flow/schedule", "internal/payload",
		"persistence"}},
	{"api/v1/work", []string{"api", "api/v1/catalog", "api/v1/render", "api/v1/route", "api/wire",
		"engine", "flow", "flow/trace", "persistence"}},
	{"api/v1/history", []string{"api", "api/stream", "api/v1/catalog", "api/v1/render",
		"api/v1/route", "api/v1/work", "api/wire", "definition/show", "engine", "flow", "flow/expr",
		"flow/timeline", "flow/trace", "internal/payload", "persistence"}},
	{"api/v1/statistics", []string{"api", "api/v1/catalog", "api/v1/cluster", "api/v1/route",
		"api/v1/work", "api/wire", "engine", "flow", "flow/stats", "persistence"}},
	{"api/v1/flows", []string{"api", "api/v1/catalog", "api/v1/route", "api/v1/statistics",
		"api/v1/tasks", "api/wire", "definition", "definition/show", "engine", "flow",
		"persistence"}},
	{"api/v1/schedules", []string{"api", "api/v1/catalog", "api/v1/route", "api/v1/tasks",
		"api/wire", "engine", "flow", "flow/duration", "flow/schedule", "persistence"}},
	{"api/v1/hooks", []string{"api", "api/v1/catalog", "api/v1/route", "api/v1/tasks", "api/wire",
		"engine", "flow", "flow/hook", "internal/bounded", "persistence"}},
	{"api/v1/approvals", []string{"api", "api/v1/catalog", "api/v1/render", "api/v1/route",
		"api/wire", "engine", "flow", "internal/payload", "persistence"}},
	{"api/v1/account", []string{"api", "api/v1/route", "api/wire", "engine", "flow",
		"persistence"}},
	{"api/v1/cluster", []string{"api", "api/v1/route", "api/wire", "engine", "flow"}},
	{"api/v1/socket", []string{"api", "api/stream", "api/v1/catalog", "api/v1/history",
		"api/v1/render", "api/v1/route", "api/wire", "flow", "internal/payload", "persistence"}},
	{"api/v1", []string{"api", "api/v1/account", "api/v1/approvals", "api/v1/catalog",
		"api/v1/cluster", "api/v1/flows", "api/v1/history", "api/v1/hooks", "api/v1/route",
		"api/v1/schedules", "api/v1/socket", "api/v1/statistics", "api/v1/tasks", "api/v1/work",
		"api/wire", "definition"}},
	{"api/attach", []string{"api", "api/stream", "api/wire/attach", "flow", "internal/packets"}},
	{"api/printer", []string{"api/wire", "internal/payload"}},
	{"api/ui", nil},
	// The API layer notifies the streams when the server shuts down.
	{"api", []string{"api/printer", "api/stream", "api/transport", "api/wire", "definition",
		"engine", "flow", "internal/lines", "internal/logids", "internal/payload", "persistence"}},
	{"dialect/ork/dbt", []string{"definition", "flow/expr"}},
	{"dialect/ork", []string{"flow", "dialect/ork/dbt", "definition", "flow/expr", "flow/types"}},
	{"dialect/ork/orkhttp", []string{"api", "api/stream", "engine", "persistence", "flow",
		"definition", "flow/expr", "dialect/ork", "flow/unitid", "flow/schedule", "api/wire"}},
	// shows clients how a flow differs from theirs
	{"dialect/pgflow/pgflowhttp", []string{"api", "api/stream", "engine", "persistence", "flow",
		"definition", "flow/expr", "definition/show", "api/wire"}},
	{"dialect/pocketflow", []string{"flow", "flow/expr"}},
	// reads an SQLite file
	{"dialect/pocketflow/importer", []string{"persistence", "persistence/sqlite", "flow",
		"definition", "dialect/pocketflow"}},
	{"dialect/pocketflow/pocketflowhttp", []string{"api/printer", "api", "engine", "persistence",
		"flow", "definition", "api/wire", "internal/payload"}},
	{"job", nil},
	{"internal/conversation", []string{"job"}},
	{"internal/flowfuncs", []string{"internal/conversation", "job"}},
	{"internal/streambuffer", []string{"job"}},
	{"durable", []string{"internal/conversation", "job"}},
	{"worker", []string{"job", "api/client", "api/wire", "api/wire/attach", "durable",
		"internal/conversation", "internal/flowfuncs", "internal/lines", "internal/packets",
		"internal/streambuffer"}},
	{"worker/demo", []string{"worker"}},
	{".", []string{"actors", "api", "api/attach", "api/client", "api/transport", "api/v1",
		"api/v1/flows", "api/v1/tasks", "api/wire", "carriers/attached", "carriers/containers",
		"carriers/external", "carriers/functions", "carriers/logs", "carriers/programs",
		"carriers/scripts", "carriers/streams", "carriers/workers", "cluster", "cluster/gossip", "definition",
		"definition/define", "dialect/ork/orkhttp", "dialect/pgflow/pgflowhttp",
		"dialect/pocketflow/pocketflowhttp", "durable", "engine", "flow", "flow/trace",
		"internal/conversation", "internal/flowfuncs", "internal/logids", "internal/objects",
		"internal/program", "internal/secrets", "job", "member/expected", "member/inprocess", "member/layers",
		"member/membership", "member/news", "member/schedules", "member/spans", "persistence",
		"persistence/postgres"}},
	{"cmd/troupe-library", nil},
	{"cmd/bench", []string{".", "api/wire", "durable", "worker", "flow", "flow/stats", "persistence",
		"internal/garbage", "internal/testing/pgtest", "internal/tools/plot"}},
	{"cmd/troupe", []string{"internal/cli"}},
	{"internal/cli/console", []string{".", "api/client", "api/wire", "flow/duration",
		"flow/schedule", "worker"}},
	{"internal/cli/tasks", []string{"api/client", "api/wire", "definition", "flow", "flow/schedule",
		"flow/types", "internal/cli/console"}},
	{"internal/cli/flows", []string{"api/client", "api/wire", "definition", "definition/compile",
		"definition/show", "dialect/ork", "flow", "flow/types", "internal/cases",
		"internal/cli/console", "internal/cli/tasks", "internal/program", "internal/rehearse"}},
	{"internal/cli/schedules", []string{"api/client", "api/wire", "flow/schedule",
		"internal/cli/console", "internal/cli/tasks"}},
	{"internal/cli/workers", []string{".", "api/client", "api/wire", "dialect/ork", "flow",
		"internal/child", "internal/cli/console", "internal/cli/flows", "internal/lines",
		"internal/objects", "internal/program", "internal/secrets", "job", "worker",
		"worker/demo"}},
	{"internal/cli/operate", []string{".", "api/client", "api/wire", "definition",
		"dialect/pocketflow/importer", "internal/cli/console"}},
	{"internal/cli/serve", []string{".", "api/client", "api/ui", "api/wire", "dialect/ork",
		"examples/flows", "flow", "flow/trace", "internal/cli/console", "internal/cli/flows",
		"internal/cli/tasks", "worker", "worker/demo"}},
	{"internal/cli", []string{".", "api/client", "api/wire", "internal/cli/console",
		"internal/cli/flows", "internal/cli/operate", "internal/cli/schedules",
		"internal/cli/serve", "internal/cli/tasks", "internal/cli/workers", "internal/garbage"}},
	{"examples/cluster", []string{".", "api/client", "api/wire", "worker", "persistence",
		"internal/testing/pgtest", "internal/testing/ports", "internal/testing/process"}},
	{"examples/builder", []string{".", "flow", "definition/define"}},
	{"examples/checkout", []string{".", "durable"}},
	{"examples/report", []string{".", "durable"}},
	{"examples/subscription", []string{".", "durable"}},
	{"examples/agent", []string{".", "durable"}},
	{"examples/trip", []string{".", "durable"}},
	{"examples/embedded", []string{"."}},
	{"examples/nightly", []string{".", "api/wire"}},
	{"examples/order", []string{".", "definition/define"}},
	{"examples/flows", []string{"api/client", "api/wire", "definition"}},
	{"examples/worker", []string{"worker"}},
	{"internal/child", nil},
	{"internal/host", nil},
	{"internal/packets", nil},
	{"internal/bounded", nil},
	{"internal/garbage", nil},
	{"internal/goroutines", nil},
	{"internal/lines", nil},
	{"internal/logids", []string{"flow", "flow/trace"}},
	{"internal/series", nil},
	{"internal/tenure", nil},
	{"internal/objects", nil},
	{"internal/payload", []string{"internal/objects", "persistence", "flow", "flow/expr"}},
	{"internal/rehearse", []string{"flow", "flow/duration", "flow/expr"}},
	{"internal/cases", []string{"flow", "definition", "definition/compile", "flow/expr",
		"definition/show", "internal/rehearse"}},
	{"troupetest", []string{"job", "flow", "definition/define", "definition", "durable", "internal/cases",
		"internal/conversation", "internal/rehearse"}},

	// Not in the product: tests, and the packages used by tests.
	{"internal/testing/storetest", []string{"persistence", "internal/testing/faulty",
		"internal/testing/model", "flow", "flow/schedule", "flow/stats"}},
	{"internal/testing/model", []string{"persistence", "flow/stats"}},
	{"internal/testing/faulty", []string{"persistence"}},
	{"api/blackbox", nil}, // tests only
	{"sdk", nil},          // tests only
	{"internal/testing/certtest", nil},
	{"internal/testing/attack", nil}, // tests only
	{"internal/testing/built", nil},
	{"internal/testing/containerhost", []string{"internal/testing/process"}},
	{"internal/testing/containers", nil}, // tests only
	{"internal/testing/ports", nil},
	{"internal/testing/bucketest", []string{"internal/objects"}},
	{"internal/testing/process", nil},
	{"internal/testing/pgtest", []string{"internal/testing/ports"}},
	{"internal/testing/e2e", nil}, // tests only
	{"internal/testing/errands", []string{".", "api/wire", "internal/testing/containerhost", "flow",
		"flow/schedule", "persistence", "worker"}},
	{"internal/testing/faults", nil}, // tests only
	{"internal/testing/flowtest", []string{"flow", "definition/compile"}},
	{"internal/testing/schedulerdb", nil},
	{"internal/testing/sim", []string{"engine", "actors", "carriers", "carriers/attached",
		"carriers/external", "carriers/functions", "durable", "member/schedules", "api/wire/attach",
		"cluster", "internal/conversation", "internal/host", "job", "persistence",
		"internal/testing/model", "flow", "definition", "definition/compile", "flow/expr",
		"flow/schedule"}},

	// Tools of contributors.
	{"internal/tools/apigen", nil},
	{"internal/tools/borders", nil},
	{"internal/tools/plot", nil},
	{"internal/tools/protogen", nil},
	{"internal/tools/testprogress", nil},
	{"internal/tools/tidy", nil},
	{"internal/tools/docgen", []string{"api", "api/wire", "internal/cli"}},
	{"internal/tools/words", []string{"internal/cli"}},
}

// libraries lists libraries that shape a design. Each library is imported only by the package built
// around it. An entry includes all packages of the library.
var libraries = []struct {
	path   string
	usedBy []string
}{
	{"github.com/asynkron/protoactor-go", []string{"actors", "actors/journal"}},
	{"github.com/bufbuild/protocompile", []string{"internal/tools/protogen"}},
	{"github.com/hashicorp/memberlist", []string{"cluster/gossip"}},
	{"github.com/moby/moby/client", []string{"carriers/containers"}},
	{"github.com/ebitengine/purego", []string{"cmd/troupe-library"}},
	{"github.com/danielgtaylor/huma/v2", []string{"api/v1/..."}},
	{"github.com/coder/websocket", []string{"dialect/ork/orkhttp", "api/v1/socket", "api/client"}},
	{"github.com/google/cel-go", []string{"flow/expr"}},
	{"github.com/go-json-experiment/json", []string{"flow/expr", "api/v1/route", "worker"}},
	{"github.com/jackc/pgx/v5", []string{".", "persistence/postgres", "internal/...", "cmd/bench"}},
	{"go.opentelemetry.io/otel/exporters", []string{"internal/cli/serve"}},
	{"go.opentelemetry.io/otel/sdk", []string{"internal/cli/serve"}},
	{"go.opentelemetry.io/proto", []string{"internal/cli/serve"}},
	{"modernc.org/sqlite", []string{"persistence/sqlite", "internal/..."}},
}

// goPackage is the output of go list for a package of this module.
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
		return []string{fmt.Sprintf("%s has no row in the table of internal/tools/borders: decide what it may import", p.localName())}
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
