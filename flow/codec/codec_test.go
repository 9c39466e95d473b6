package codec

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// thing has a field of every kind.
type thing struct {
	At    int64
	N     int
	On    bool
	Few   byte
	Name  string
	Bytes []byte
	Value json.RawMessage
	List  []thing
	Next  *thing
	Map   map[string]int
}

func code(c *Codec, t *thing) {
	c.Int64(&t.At)
	c.Int(&t.N)
	c.Bool(&t.On)
	c.Byte(&t.Few)
	Text(c, &t.Name)
	Bytes(c, &t.Bytes)
	c.Raw(&t.Value)
	List(c, &t.List, code)
	Pointer(c, &t.Next, code)
	Map(c, &t.Map, (*Codec).Int)
}

var large = json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)

func some() thing {
	return thing{At: -1 << 60, N: 7, On: true, Few: 200, Name: "ä", Bytes: []byte{0, 1}, Value: large,
		List: []thing{{Value: large}, {Name: "b", List: []thing{{N: 1}}}},
		Next: &thing{Value: json.RawMessage(`1`)}, Map: map[string]int{"b": 2, "a": 1}}
}

func TestWrittenValuesAreReadBack(t *testing.T) {
	want := some()
	w := Write([]byte("before"))
	code(w, &want)
	for _, read := range []func([]byte) *Codec{Read, ReadOwn} {
		var got thing
		r := read(w.Bytes()[len("before"):])
		code(r, &got)
		require.Empty(t, r.Broken())
		require.Empty(t, r.Bytes())
		require.Equal(t, want, got)
	}
	require.Less(t, len(w.Bytes()), 2*len(large), "a large value is written once")
}

func TestSharingWritesTheSameWithoutCopyingLargeValues(t *testing.T) {
	value := some()
	whole, sharing := Write([]byte("before")), WriteSharing([]byte("before"))
	code(whole, &value)
	code(sharing, &value)
	require.Equal(t, whole.Bytes(), bytes.Join(sharing.Pieces(), nil))
	require.True(t, slices.ContainsFunc(sharing.Pieces(), func(piece []byte) bool { return len(piece) > 0 && &piece[0] == &large[0] }))
}

func FuzzRead(f *testing.F) {
	w, all := Write(nil), some()
	code(w, &all)
	f.Add(w.Bytes())
	f.Add([]byte{})
	f.Add([]byte{0, 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second thing
		r := Read(b)
		code(r, &first)
		if r.Broken() != "" {
			require.Empty(t, r.Bytes())
			return
		}
		w := Write(nil)
		code(w, &first)
		r = ReadOwn(w.Bytes())
		code(r, &second)
		require.Empty(t, r.Broken())
		require.Equal(t, first, second)
	})
}
