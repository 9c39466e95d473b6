package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/api/wire"
)

// all has a field of each kind that occurs in answers.
type all struct {
	embedded
	Raw       json.RawMessage            `json:"raw"`
	Maybe     json.RawMessage            `json:"maybe,omitempty"`
	Text      Text                       `json:"text"`
	Named     string                     `json:"named,omitempty"`
	Plain     int                        // without a tag
	Hidden    string                     `json:"-"`
	Map       map[string]json.RawMessage `json:"map"`
	Rows      []row                      `json:"rows"`
	NoRows    []row                      `json:"no_rows,omitempty"`
	Pointer   *row                       `json:"pointer"`
	NoPointer *row                       `json:"no_pointer,omitempty"`
	Any       any                        `json:"any"`
	At        wire.Time                  `json:"at,omitzero"`
	Labels    map[string]string          `json:"labels"`
	private   json.RawMessage
}

type embedded struct {
	ID   string          `json:"id"`
	Note json.RawMessage `json:"note"`
}

type row struct {
	N      int             `json:"n"`
	Output json.RawMessage `json:"output,omitempty"`
	Below  *row            `json:"below,omitempty"`
}

func rawValues(t *rapid.T, name string) json.RawMessage {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		b, err := json.Marshal(map[string]string{rapid.String().Draw(t, "key"): rapid.String().Draw(t, "text")})
		require.NoError(t, err)
		return b
	}).Draw(t, name)
}

func rows(t *rapid.T) (list []row) {
	for range rapid.IntRange(0, 3).Draw(t, "rows") {
		list = append(list, row{N: rapid.Int().Draw(t, "n"), Output: rawValues(t, "output"), Below: &row{Output: rawValues(t, "below")}})
	}
	return list
}

func TestAnswersAreWhatTheLibraryWouldWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := all{
			embedded: embedded{ID: rapid.String().Draw(t, "id"), Note: rawValues(t, "note")},
			Raw:      rawValues(t, "raw"), Maybe: rawValues(t, "maybe"),
			Text:  Text{map[string]json.RawMessage{"<x>": rawValues(t, "text")}},
			Named: rapid.String().Draw(t, "named"), Hidden: "x", Rows: rows(t), NoRows: rows(t), private: rawValues(t, "private"),
			Labels: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels"),
			At:     wire.Millis(rapid.Int64Range(0, 1).Draw(t, "at") * 1e12),
		}
		if rapid.Bool().Draw(t, "full") {
			v.Map = map[string]json.RawMessage{"b": rawValues(t, "b"), "a\"<": rawValues(t, "a"), "": nil}
			v.Pointer, v.NoPointer, v.Any = &row{}, &row{N: 1},
				map[string]any{"row": row{Output: rawValues(t, "any")}, "x": []any{nil, 1.5}}
		}
		require.Equal(t, marshaled(t, v), written(t, v))
		require.Equal(t, marshaled(t, []*all{&v, nil}), written(t, []*all{&v, nil}))
	})
}

func marshaled(t require.TestingT, v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(v))
	return b.String()
}

func written(t require.TestingT, v any) string {
	var b bytes.Buffer
	require.NoError(t, JSON(&b, v, "\n"))
	return b.String()
}

func TestWhatIsNoValueOfAUserIsWrittenByTheLibrary(t *testing.T) {
	for _, v := range []any{nil, 1, "<a>", true, []string{}, []int(nil),
		map[string]int{"b": 1, "a": 2}, struct{}{}, time.Unix(0, 0).UTC(), Text{"a\"b\n"}, Text{},
		wire.TaskSummary{ID: "x"}, &wire.Page[wire.Run]{Items: []wire.Run{{State: "ok"}}},
		json.RawMessage(`{"a":"\u2028"}`), (*row)(nil), []json.RawMessage{nil, []byte("1")}} {
		require.Equal(t, marshaled(t, v), written(t, v))
	}
	err := JSON(&bytes.Buffer{}, []any{func() {}}, "")
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrGone)
}

// counter counts bytes and stores none.
type counter struct{ n, most int }

func (c *counter) Write(b []byte) (int, error) {
	c.n += len(b)
	c.most = max(c.most, len(b))
	return len(b), nil
}

func TestLargeValuesAreNotPutTogether(t *testing.T) {
	const megabyte = 1 << 20
	value := json.RawMessage(`"` + strings.Repeat("x", megabyte) + `"`)
	shared := map[string]json.RawMessage{}
	for i := range 64 {
		shared[strings.Repeat("k", i+1)] = value
	}
	v := all{Map: shared, Text: Text{shared}, Rows: []row{{Output: value}}, Any: shared}
	require.NoError(t, JSON(&counter{}, v, "")) // fills the cache of types
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var c counter
	require.NoError(t, JSON(&c, v, ""))
	runtime.ReadMemStats(&after)
	require.Greater(t, c.n, 3*64*megabyte)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(megabyte/4))
}

// failing fails after some bytes.
type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

func TestAReaderWhoIsGoneEndsAnAnswer(t *testing.T) {
	value := json.RawMessage(`"` + strings.Repeat("\\\"", 100_000) + `"`)
	v := all{Raw: value, Text: Text{value}, Rows: []row{{Output: value}}, Any: []any{value, value}}
	size := len(written(t, v))
	for left := 0; left < size; left += 10_007 {
		err := JSON(&failing{left}, v, "")
		require.ErrorIs(t, err, ErrGone, "after %d of %d bytes", left, size)
		require.ErrorIs(t, err, errFull)
	}
}
