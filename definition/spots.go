package definition

import "github.com/troupe-engine/troupe/flow/expr"

// Spot is a position in the text of a definition: a line and column from 1.
type Spot struct{ Line, Column int }

// NodeSpots returns the positions of the nodes in the text of the definition. The name of a nested
// node is the path of all keys, separated by /. Nodes that are not in the text are omitted.
func (d *Definition) NodeSpots() map[string]Spot {
	spots := map[string]Spot{}
	if d.source != nil && d.source.root != nil {
		addSpots(spots, d.source.root, "")
	}
	return spots
}

func addSpots(spots map[string]Spot, scope textValue, path string) {
	if scope.kind() != expr.KindObject {
		return
	}
	_, nodes := childValue(scope, "nodes")
	if nodes == nil || nodes.kind() != expr.KindObject {
		return
	}
	for _, m := range nodes.members() {
		line, column := m.at.lineColumn()
		spots[path+m.key] = Spot{line, column}
		if m.value == nil || m.value.kind() != expr.KindObject {
			continue
		}
		for _, inside := range []string{"flow", "subflow"} {
			if _, below := childValue(m.value, inside); below != nil {
				addSpots(spots, below, path+m.key+"/")
			}
		}
	}
}
