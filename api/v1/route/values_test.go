package route

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestUserValuesAreKnownByTheirNames(t *testing.T) {
	u := userValues{}
	u.noteFields(reflect.TypeFor[struct {
		Task string `path:"task"`
		Body *wire.StartRequest
	}]())
	u.noteFields(reflect.TypeFor[[]wire.AppendUnits]())
	require.Equal(t, userValues{"params": true, "input": true, "items": true}, u)
}

// TestLargeBodiesAreDecodedLikeSmallOnes decodes each body unchanged and with a large value in it.
func TestLargeBodiesAreDecodedLikeSmallOnes(t *testing.T) {
	large := strings.Repeat(`{"name":"x","n":1},`, largeBody/10)
	u := userValues{"value": true}
	for name, body := range map[string]string{
		"a list":                    `{"key":"k","value":[` + large + `0]}`,
		"an object":                 `{"key":"k","value":{"a":[` + large + `0]}}`,
		"a text":                    `{"key":"k","value":"` + strings.Repeat("x", largeBody) + `"}`,
		"a number":                  `{"key":"k","value":` + strings.Repeat("1", largeBody) + `}`,
		"a number of no float":      `{"key":"k","value":[` + large + `1e999]}`,
		"a key that is there twice": `{"key":"k","value":[` + large + `0],"value":1}`,
		"half a surrogate":          `{"key":"\ud800","value":[` + large + `"\udc00"]}`,
		"what is no UTF-8":          `{"key":"k","value":[` + large + `"` + "\xff" + `"]}`,
		"a name in capitals":        `{"KEY":"k","Value":[` + large + `0]}`,
		"an unknown name":           `{"key":"k","valu":[` + large + `0]}`,
		"a key of another type":     `{"key":{},"value":[` + large + `0]}`,
		"a value that is not whole": `{"key":"k","value":[` + large + `0}`,
		"a body that is not whole":  `{"key":"k","value":[` + large + `0]`,
		"more behind the body":      `{"key":"k","value":[` + large + `0]} {}`,
		"another thing":             `[` + large + `0]`,
		"null":                      `null` + strings.Repeat(" ", largeBody),
	} {
		t.Run(name, func(t *testing.T) {
			var want, got wire.Signal
			err := json.Unmarshal([]byte(body), &want)
			require.Equal(t, err, u.unmarshalFast([]byte(body), &got))
			if err == nil {
				require.Equal(t, want, got)
			}

			var whole, outline any
			require.Equal(t, unmarshalBody([]byte(body), &whole), u.unmarshalFast([]byte(body), &outline))
			require.Equal(t, shapeOf(whole), shapeOf(outline))
		})
	}
}

// shapeOf returns the parts of a signal that its schema describes: names, and types of all but the
// value.
func shapeOf(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return reflect.TypeOf(v)
	}
	shape := map[string]any{}
	for name, member := range o {
		shape[name] = reflect.TypeOf(member)
	}
	return shape
}
