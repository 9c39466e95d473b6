package cases

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Summary returns the coverage of a flow as one line.
func Summary(c *rehearse.Coverage) string {
	nodes, nodesHit, edges, edgesHit := c.Totals()
	return fmt.Sprintf("%d of %d nodes, %d of %d edges (%.0f %%)", nodesHit, nodes, edgesHit, edges, c.Percent())
}

// Marks prints a flow with the number of visits of each node and edge; ✗ marks uncovered ones.
func Marks(w io.Writer, f *File, c *rehearse.Coverage) error {
	fmt.Fprintf(w, "%s: %s\n", f.Flow, Summary(c))
	view := show.Plan(f.Plan, f.Flow)
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	m := coverageWriter{t, c}
	m.writeScope(f.Plan.Root, view.Root.Nodes, "", 1)
	if f.Plan.Closing != nil {
		fmt.Fprintln(t, "when it is over:")
		m.writeScope(f.Plan.Closing, view.Closing, closingScope, 1)
	}
	_ = t.Flush() // a strings.Builder returns no errors
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// closingScope is the scope of the nodes that run when a task is over.
const closingScope = "~"

type coverageWriter struct {
	io.Writer
	*rehearse.Coverage
}

func (m *coverageWriter) writeScope(g *flow.PlanScope, nodes []*show.Node, path string, depth int) {
	for _, n := range nodes {
		if n.Ghost() || g.Nodes[n.Key] == nil {
			continue
		}
		times := m.Node(path, n.Key)
		fmt.Fprintf(m, "%s%s %s\t%s\t%d×\t%s\n", strings.Repeat("  ", depth), coverageMark(times),
			n.Key, n.Kind, times, strings.Join(m.edgeTexts(path, n), "; "))
		if n.Inside != nil && g.Nodes[n.Key].Sub != nil {
			m.writeScope(g.Nodes[n.Key].Sub, n.Inside.Nodes, strings.TrimPrefix(path+"/"+n.Key, "/"), depth+1)
		}
	}
}

func (m *coverageWriter) edgeTexts(path string, n *show.Node) (all []string) {
	for _, e := range n.Edges {
		times, _ := m.Edge(path, n.Key, e.Action)
		all = append(all, fmt.Sprintf("%s %s → %s %d×", coverageMark(times), e.Action, cmp.Or(e.To, "end"), times))
	}
	for _, what := range []string{rehearse.Runs, rehearse.Skips} {
		if times, there := m.Edge(path, n.Key, what); there {
			all = append(all, fmt.Sprintf("%s %s %d×", coverageMark(times), what, times))
		}
	}
	return all
}

func coverageMark(times int) string {
	if times > 0 {
		return "✓"
	}
	return "✗"
}
