package define_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/define"
)

func TestMissingAndForeignNodesAreErrorsOfTheDefinition(t *testing.T) {
	foreign := define.NewGraph("other").Node("far").Service("s")
	for name, tt := range map[string]struct {
		build func(b *define.Builder, n *define.NodeBuilder)
		want  string
	}{
		"On": {func(_ *define.Builder, n *define.NodeBuilder) { n.On("done", nil) },
			`flow: the node after "a" is nil: give what Node returns`},
		"Then": {func(_ *define.Builder,
			n *define.NodeBuilder) {
			n.Then(nil).Service("s").Then(n)
		}, `flow: the node after "a" is nil: give what Node returns`},
		"After": {func(_ *define.Builder, n *define.NodeBuilder) { n.After(n, nil) },
			`flow: a node before "a" is nil: give what Node returns`},
		"Compensate": {func(_ *define.Builder, n *define.NodeBuilder) { n.Compensate(nil) },
			`flow: the node that undoes "a" is nil: give what Node returns`},
		"Start": {func(b *define.Builder, _ *define.NodeBuilder) { b.Start(nil) },
			"flow: the start is nil: give what Node returns"},
		"Finally": {func(b *define.Builder, _ *define.NodeBuilder) { b.Finally(nil) },
			"flow: the last node is nil: give what Node returns"},
		"Branch": {func(b *define.Builder, _ *define.NodeBuilder) { b.Branch("in", nil) },
			`flow: node "in": the flow inside is nil: give what NewDag or NewGraph returns`},
		"Subflow": {func(b *define.Builder, _ *define.NodeBuilder) { b.Subflow("in", nil) },
			`flow: node "in": the flow inside is nil: give what NewDag or NewGraph returns`},
		"foreign node": {func(_ *define.Builder, n *define.NodeBuilder) { n.Then(foreign) },
			`flow: the node after "a", "far", belongs to another flow: give a node of this one`},
	} {
		t.Run(name, func(t *testing.T) {
			b := define.NewGraph("f")
			tt.build(b, b.Node("a").Service("s"))
			_, err := b.Definition()
			require.EqualError(t, err, tt.want)
			_, err = b.JSON()
			require.EqualError(t, err, tt.want)
		})
	}
}
