package define

import "github.com/troupe-engine/troupe/flow/expr"

// Spot is where something is in the text of a definition: a line and a column, from 1.
type Spot struct{ Line, Column int }

// NodeSpots tells where the nodes of a definition are in the text that it was read from. A node
// inside of others goes by the keys of all of them, with / between; nothing is told of a definition
// without a text, or of nodes that are elsewhere.
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
