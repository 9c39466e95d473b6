package flow

import (
	"maps"
	"slices"
)

// QueueServices are the services that jobs of the plan may wait for in the queue, in order. Those that a
// parallel reads from params are not known before it runs.
func (p *Plan) QueueServices() []string {
	all := map[string]bool{}
	p.Root.addServices(all)
	p.Closing.addServices(all)
	return slices.Sorted(maps.Keys(all))
}

func (g *PlanScope) addServices(all map[string]bool) {
	if g == nil {
		return
	}
	for _, n := range g.Nodes {
		n.Exec.addService(all)
		n.Sub.addServices(all)
		if n.Each == nil {
			continue
		}
		for i := range n.Each.Branches {
			n.Each.Branches[i].Exec.addService(all)
		}
		for _, x := range n.Each.Items {
			x.addService(all)
		}
	}
}

func (x *Exec) addService(all map[string]bool) {
	if x.Type == ExecQueue && x.Service != "" {
		all[x.Service] = true
	}
}
