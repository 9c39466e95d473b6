package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const orkWorkflow = `name: nightly
tasks:
  a-b: {executor: process, command: "echo 'ORK_OUTPUT:[1,2]'"}
  load: {executor: process, command: "echo $ORK_ITEM_JSON", foreach: a-b}
`

func TestAWorkflowFileOfOrkIsChecked(t *testing.T) {
	got := call(t, "flow", "validate", write(t, "w.yaml", orkWorkflow))
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, `w.yaml:4:70: warning: tasks.load.foreach: "a-b" makes a-b a dependency: add it to depends_on`)
	require.Contains(t, got.stdout, "w.yaml: valid (a workflow of Ork)\n")

	got = call(t, "flow", "validate", write(t, "w.yaml", orkWorkflow+"  c: {executor: process, command: ls, depends_on: [nobody]}\n"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, "w.yaml:5:52: error: tasks.c.depends_on[0]: task c depends on unknown task nobody")
}
