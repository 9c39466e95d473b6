package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsUnderWayIsNamedIfItHasAName(t *testing.T) {
	for node, want := range map[string]string{
		"{service: s}":                                   "a http job of service s is being carried out",
		"{exec_type: local_func, func: mul}":             "a local_func job of service mul is being carried out",
		"{exec_type: local_script, script: {code: 'x'}}": "a local_script job is being carried out",
	} {
		tb := newTable(t, planOf(t, "start: a\nnodes: {a: "+node+"}"))
		_, err := tb.do(Start{})
		require.NoError(t, err)
		require.Equal(t, want, Waiting(tb.state)[0].Text)
	}
}
