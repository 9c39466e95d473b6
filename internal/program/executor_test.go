package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// executorsOfPython are typical classes of users.
const executorsOfPython = `
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Optional
from ork import Context, TaskError, executor

@dataclass
class Config:
    project: str
    location: str = "US"

@dataclass
class Output:
    text: str
    upstream: Dict[str, object]

@executor
class Shout:
    def __init__(self, config: Config):
        self.config = config

    def run(self, config_file: str, ctx: Context, upstream: Dict[str, object] = {}) -> Output:
        ctx.metrics.record("bytes", 7, labels={"task": ctx.task_name})
        text = Path(config_file).read_text().strip()
        return Output(" ".join([type(self.config).__name__, self.config.project, self.config.location, text, ctx.task_name]), upstream)

@executor(name="x")
class Named:
    def __init__(self, project, **more):
        self.seen = [project, more]

    async def run(self, config_file, context, upstream, *, input):
        return self.seen + [config_file, context.attempt, upstream, input]

class Plain:
    def run(self, config_file): return config_file

class Large:
    def run(self, *given): return [len(given), len(given[2]["a"])]

class Fails:
    def run(self, config_file, ctx, upstream): raise TaskError("no such table", {"id": 7})

class Idle: pass
def function(): pass
`

// executed runs a job of a class with a configuration.
func executed(t *testing.T, class, config string, more program.Job) program.Result {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "executors/all.py"), executorsOfPython, 0o644)
	write(t, filepath.Join(dir, "sql/users.yaml"), "file: users.sql\n", 0o644)
	more.Type = flow.ExecPython
	more.Program = &flow.Program{Module: "executors.all", Function: class, Upstream: true,
		Env: map[string]string{"ORK_EXECUTOR": "executors.all:" + class,
			"ORK_EXECUTOR_CONFIG": config, "ORK_CONFIG_FILE": "sql/users.yaml"}}
	return runIn(t, dir, more)
}

func TestPythonExecutorsRunTasks(t *testing.T) {
	facts := program.Facts{Step: "stage", Attempt: 2, Upstream: json.RawMessage(`{"a":[1]}`)}
	for class, tt := range map[string]struct{ config, want string }{
		"Shout": {`{"project":"p","other":1}`, `{"text": "Config p US file: users.sql stage", "upstream": {"a": [1]}}`},
		"Named": {`{"project":"p","x":1}`, `["p", {"x": 1}, "sql/users.yaml", 2, {"a": [1]}, {"n": 1}]`},
		"Plain": {`{}`, `"sql/users.yaml"`},
	} {
		res := executed(t, class, tt.config, program.Job{Facts: facts, Input: json.RawMessage(`{"n":1}`)})
		require.Empty(t, res.Error, class)
		require.Equal(t, tt.want, string(res.Output), class)
		if class == "Shout" {
			require.Len(t, res.Metrics, 1)
			require.Equal(t, map[string]string{"task": "stage"}, res.Metrics[0].Labels)
		}
	}
}

func TestInvalidPythonExecutorsReportTheReason(t *testing.T) {
	for class, want := range map[string]string{
		"Fails": "no such table",
		"Idle": "exit status 1: AttributeError: the executor Idle has no method " +
			"run(config_file, ctx, upstream)",
		"Shout": "exit status 1: TypeError: ",
		"function": "exit status 1: AttributeError: there is no class 'function' in " +
			"executors.all; there are: Config, Fails, Idle, Large, Named, Output, Plain, Shout",
	} {
		res := executed(t, class, "{}", program.Job{})
		require.True(t, strings.HasPrefix(res.Error, want), "%s: %s", class, res.Error)
	}
}

// The results of dependencies may be larger than any variable.
func TestALargeUpstreamIsInAFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	upstream := json.RawMessage(fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 300_000)))
	res := executed(t, "Large", "{}", program.Job{Input: upstream, Facts: program.Facts{Upstream: upstream}})
	require.Equal(t, "[3, 300000]", string(res.Output), res.Error)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "troupe-inputs-*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
