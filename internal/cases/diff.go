package cases

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// listDifferences returns the differences between a value and the expected value, by path. If part
// is set, fields that are not expected are ignored.
func listDifferences(path string, want, got json.RawMessage, part bool) []string {
	switch {
	case expr.Equal(want, got), part && expr.KindOf(want) != expr.KindObject && expr.Contains(got, want):
		return nil
	case expr.KindOf(want) == expr.KindObject && expr.KindOf(got) == expr.KindObject:
		return diffObjects(path, want, got, part)
	case !part && expr.KindOf(want) == expr.KindArray && expr.KindOf(got) == expr.KindArray:
		return diffArrays(path, want, got)
	}
	return []string{fmt.Sprintf("%s: expected %s, got %s", path, rehearse.Value(want), rehearse.Value(got))}
}

func diffObjects(path string, want, got json.RawMessage, part bool) (list []string) {
	members, _ := expr.Members(want)
	for _, m := range members {
		v, there := expr.Field(got, m.Key)
		if !there {
			list = append(list, fmt.Sprintf("%s.%s: expected %s, but it is not there", path, m.Key, rehearse.Value(m.Value)))
			continue
		}
		list = append(list, listDifferences(path+"."+m.Key, m.Value, v, part)...)
	}
	if part {
		return list
	}
	members, _ = expr.Members(got)
	for _, m := range members {
		if _, wanted := expr.Field(want, m.Key); !wanted {
			list = append(list, fmt.Sprintf("%s.%s: not expected, got %s", path, m.Key, rehearse.Value(m.Value)))
		}
	}
	return list
}

func diffArrays(path string, want, got json.RawMessage) (list []string) {
	a, _ := expr.Elements(want)
	b, _ := expr.Elements(got)
	for i := range max(len(a), len(b)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(a):
			list = append(list, fmt.Sprintf("%s: not expected, got %s", at, rehearse.Value(b[i])))
		case i >= len(b):
			list = append(list, fmt.Sprintf("%s: expected %s, but it is not there", at, rehearse.Value(a[i])))
		default:
			list = append(list, listDifferences(at, a[i], b[i], false)...)
		}
	}
	return list
}
