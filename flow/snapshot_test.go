package flow

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/codec"
)

// TestSnapshotsHoldEveryField fills all fields of a snapshot through reflection, so that no new
// field is missed.
func TestSnapshotsHoldEveryField(t *testing.T) {
	var s State
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n, 0)
	require.Greater(t, n, 150, "it has been filled")
	written := codec.Write(nil)
	codeState(written, &s)
	var again State
	read := codec.ReadOwn(written.Bytes())
	codeState(read, &again)
	require.Empty(t, read.Broken())
	require.Empty(t, read.Bytes())
	require.Equal(t, s, again)
}

// TestANodeOfOneUnitHasNothingAside covers the most common node of a dag, and checks that a
// snapshot restores its fields.
func TestANodeOfOneUnitHasNothingAside(t *testing.T) {
	n := NodeState{Output: json.RawMessage("1"), StartedAt: 5, EndedAt: 6, Visit: 1}
	n.status, _ = StepCompleted.statusIndex()
	n.setUnits(NodeUnits{Total: 1, Initial: 1})
	require.Nil(t, n.Aside)
	written := codec.Write(nil)
	codeNode(written, &n)
	var again NodeState
	codeNode(codec.ReadOwn(written.Bytes()), &again)
	require.Equal(t, n, again)
	require.Equal(t, UnitCount{Total: 1, Initial: 1, Done: 1}, again.unitCounts())

	n.setUnits(NodeUnits{Total: 2, Initial: 1, Left: 1, Failures: 1})
	require.Equal(t, UnitCount{Total: 2, Initial: 1, Done: 2, Failed: 1}, n.unitCounts(), "others are told in full")
}

func TestASnapshotWithAnInvalidStatusIsRejected(t *testing.T) {
	status := StepStatus("nonsense")
	written := codec.Write(nil)
	codec.Text(written, &status)
	read := codec.ReadOwn(append(written.Bytes(), make([]byte, 64)...))
	codeNode(read, new(NodeState))
	require.NotEmpty(t, read.Broken())
}

// fill sets a value and everything below it to distinct contents that are not zero. Scopes and
// steps contain each other, so it stops at a maximum depth.
func fill(v reflect.Value, n *int, depth int) {
	*n++
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(strconv.Itoa(*n)))
		return
	case PastState:
		v.SetUint(1)
		return
	case UnitStatus:
		v.SetUint(uint64(1 + *n%int(UnitCanceled)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text " + strconv.Itoa(*n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n * 1001))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		if depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), n, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n, depth+1)
		fill(v.Index(1), n, depth+1)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key "+strconv.Itoa(*n)), element)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !Following[v.Type().Name()+"."+f.Name] {
				fill(v.Field(i), n, depth+1)
			}
		}
		if node, ok := v.Addr().Interface().(*NodeState); ok {
			node.status = nodeStatus(1 + *n%(len(nodeStatuses)-1))
		}
	default:
		panic("a snapshot cannot hold a " + v.Type().String())
	}
}
