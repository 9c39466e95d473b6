package cases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Names are what a flow calls its parts.
type Names struct {
	Nodes      []string // paths: a node in a flow inside another is sub/node
	Services   []string // and functions
	hasDynamic bool     // there are services that only params name
}

// NamesOf finds the names in a plan. What the compiler made for a node has none.
func NamesOf(p *flow.Plan) *Names {
	n := &Names{}
	n.addScope("", p.Root)
	n.addScope("", p.Closing)
	slices.Sort(n.Nodes)
	slices.Sort(n.Services)
	n.Nodes, n.Services = slices.Compact(n.Nodes), slices.Compact(n.Services)
	return n
}

func (n *Names) addScope(prefix string, g *flow.PlanScope) {
	if g == nil {
		return
	}
	for key, node := range g.Nodes {
		n.Nodes = append(n.Nodes, prefix+key)
		n.addExec(&node.Exec)
		if node.Each != nil {
			for i := range node.Each.Branches {
				n.addExec(&node.Each.Branches[i].Exec)
			}
			n.hasDynamic = n.hasDynamic || node.Kind == flow.KindParallel && len(node.Each.Branches) == 0
			for _, x := range node.Each.Items {
				n.addExec(&x)
			}
		}
		n.addScope(prefix+key+"/", node.Sub)
	}
}

func (n *Names) addExec(x *flow.Exec) {
	for _, name := range []string{x.Service, x.Func} {
		if name != "" {
			n.Services = append(n.Services, name)
		}
	}
}

// hasNode reports whether there is such a node.
func (n *Names) hasNode(name string) bool { return slices.Contains(n.Nodes, name) }

// hasName reports whether a node, service or function may be called so.
func (n *Names) hasName(name string) bool {
	return n.hasDynamic || n.hasNode(name) || slices.Contains(n.Services, name)
}

// Check refuses what nothing in the flow is called.
func (n *Names) Check(name string) error {
	if n.hasName(name) {
		return nil
	}
	return fmt.Errorf("unknown node, service or function: %s%s", name, nameHint(name, n.allNames()))
}

// nameHint is which name may have been meant, or which ones there are.
func nameHint(name string, names []string) string {
	if near := flow.Nearest(name, names); near != "" {
		return ": did you mean " + near + "?"
	}
	if len(names) > 0 && len(names) <= 20 {
		return ": there are " + strings.Join(names, ", ")
	}
	return ""
}

// allNames are the names of both.
func (n *Names) allNames() []string {
	all := slices.Concat(n.Nodes, n.Services)
	slices.Sort(all)
	return slices.Compact(all)
}
