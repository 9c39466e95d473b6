package expr

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// appendCEL appends a value as JSON. Parts of variables keep their bytes.
func appendCEL(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the result is nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case types.Null:
		return append(dst, null...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		return appendDouble(dst, float64(v))
	case longNumber:
		return append(dst, v.text...), nil
	case types.String:
		return AppendQuote(dst, string(v)), nil
	case types.Bytes:
		return AppendQuote(dst, base64.StdEncoding.EncodeToString(v)), nil
	case *celArray:
		return append(dst, v.raw...), nil
	case *celObject:
		if raw := v.rawJSON(); raw != nil {
			return append(dst, raw...), nil
		}
		return appendMap(dst, v, depth)
	case traits.Lister:
		return appendList(dst, v, depth)
	case traits.Mapper:
		return appendMap(dst, newCELObject(v), depth)
	}
	return nil, fmt.Errorf("the result, or a part of it, is %s, which JSON does not have", celKind(v))
}

func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the result is %v, which JSON does not have", f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64), nil
}

func appendList(dst []byte, list traits.Lister, depth int) ([]byte, error) {
	dst = append(dst, '[')
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendCEL(dst, it.Next(), depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, o *celObject, depth int) ([]byte, error) {
	dst = append(dst, '{')
	for i, key := range o.keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		name, ok := key.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, fmt.Errorf("a key of an object is %s, not a text", celKind(key))
		}
		dst = append(AppendQuote(dst, string(name)), ':')
		val, _ := o.Find(key)
		var err error
		if dst, err = appendCEL(dst, val, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
