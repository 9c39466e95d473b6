package cases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Names are what a flow calls its parts.
type Names struct {
	Nodes    []string // paths: a node in a flow inside another is sub/node
	Services []string // and functions
	open     bool     // there are services that only params name
}

// NamesOf finds the names in a plan. What the compiler made for a node has none.
func NamesOf(p *flow.Plan) *Names {
	n := &Names{}
	n.scope("", p.Root)
	n.scope("", p.Closing)
	slices.Sort(n.Nodes)
	slices.Sort(n.Services)
	n.Nodes, n.Services = slices.Compact(n.Nodes), slices.Compact(n.Services)
	return n
}

func (n *Names) scope(prefix string, g *flow.PlanScope) {
	if g == nil {
		return
	}
	for key, node := range g.Nodes {
		n.Nodes = append(n.Nodes, prefix+key)
		n.exec(&node.Exec)
		if node.Each != nil {
			for i := range node.Each.Branches {
				n.exec(&node.Each.Branches[i].Exec)
			}
			n.open = n.open || node.Kind == flow.KindParallel && len(node.Each.Branches) == 0
			for _, x := range node.Each.Items {
				n.exec(&x)
			}
		}
		n.scope(prefix+key+"/", node.Sub)
	}
}

func (n *Names) exec(x *flow.Exec) {
	for _, name := range []string{x.Service, x.Func} {
		if name != "" {
			n.Services = append(n.Services, name)
		}
	}
}

// node says whether there is such a node.
func (n *Names) node(name string) bool { return slices.Contains(n.Nodes, name) }

// any says whether a node, service or function may be called so.
func (n *Names) any(name string) bool {
	return n.open || n.node(name) || slices.Contains(n.Services, name)
}

// Check refuses what nothing in the flow is called.
func (n *Names) Check(name string) error {
	if n.any(name) {
		return nil
	}
	return fmt.Errorf("unknown node, service or function: %s%s", name, hint(name, n.all()))
}

// hint is which name may have been meant, or which ones there are.
func hint(name string, names []string) string {
	if near := flow.Nearest(name, names); near != "" {
		return ": did you mean " + near + "?"
	}
	if len(names) > 0 && len(names) <= 20 {
		return ": there are " + strings.Join(names, ", ")
	}
	return ""
}

// all are the names of both.
func (n *Names) all() []string {
	all := slices.Concat(n.Nodes, n.Services)
	slices.Sort(all)
	return slices.Compact(all)
}
