package program_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/job"
)

func TestMetricsOfFailedProgramsAreCounted(t *testing.T) {
	for code, command := range map[string]string{"": "exit 0", "exit status 3: no": "echo no >&2; exit 3"} {
		r, _ := withSecrets(t)
		res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess, Program: &flow.Program{Command: `
echo 'ORK_METRIC:{"name": "rows", "value": 3, "labels": {"table": "a"}}'
echo 'ORK_METRIC: {"name": "rows", "value": 4.5, "labels": {"table": "a"}}'
echo 'ORK_METRIC:{"name": "rows", "value": -1, "labels": {"table": "b", "shard": 2}}'
echo 'ORK_METRIC:{"name": "rows"}'
echo 'ORK_METRIC:{"name": "rows", "value": NaN}'
echo 'ORK_METRIC:{"name": "", "value": 1}'
echo 'ORK_METRIC:{"name": "huge", "value": 1e999}'
` + command}})
		require.Equal(t, code, res.Error)
		require.Equal(t, []job.Number{
			{Name: "rows", Labels: map[string]string{"table": "a"}, Count: 2, Sum: 7.5, Last: 4.5},
			{Name: "rows", Labels: map[string]string{"table": "b", "shard": "2"}, Count: 1, Sum: -1, Last: -1},
		}, res.Metrics)
	}
}

func TestMetricsHaveNoSecretInThem(t *testing.T) {
	r, _ := withSecrets(t)
	res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess, Program: &flow.Program{Secrets: asked, Command: `
echo "ORK_METRIC:{\"name\": \"a $PASSWORD\", \"value\": 1}"
echo "ORK_METRIC:{\"name\": \"rows\", \"value\": 1, \"labels\": {\"by\": \"me:$PASSWORD\"}}"`}})
	require.Empty(t, res.Error)
	require.Equal(t, []job.Number{{Name: "rows", Labels: map[string]string{"by": "me:***"}, Count: 1, Sum: 1, Last: 1}}, res.Metrics)
}

func TestMetricsAreBounded(t *testing.T) {
	heard := program.Listen(0, &flow.Program{OutputMode: flow.OutputMarker})
	for i := range 10_000 {
		fmt.Fprintf(heard.Stdout(), "ORK_METRIC:{\"name\": \"m%d\", \"value\": 1}\n", i%1000)
	}
	fmt.Fprintf(heard.Stdout(), "ORK_METRIC:{\"name\": \"%s\", \"value\": 1}\n", strings.Repeat("x", 5000))
	list := heard.Result("").Metrics
	require.Len(t, list, 100)
	require.EqualValues(t, 10, list[99].Count, "those that are known go on being counted")
	heard = program.Listen(0, &flow.Program{OutputMode: flow.OutputMarker})
	for i := range 100 {
		fmt.Fprintf(heard.Stdout(), "ORK_METRIC:{\"name\": \"%d%s\", \"value\": 1}\n", i, strings.Repeat("x", 3000))
	}
	require.Less(t, len(job.NumbersJSON(heard.Result("").Metrics)), 40<<10)
}
