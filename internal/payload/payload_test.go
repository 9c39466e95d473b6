package payload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
)

// keeping returns a store that keeps values above a size in a folder.
func keeping(t *testing.T, over int) (*payload.Store, string) {
	t.Helper()
	folder := t.TempDir()
	return in(t, folder, over), folder
}

// in returns another store on the same folder, with an empty cache.
func in(t *testing.T, folder string, over int) *payload.Store {
	t.Helper()
	bucket, err := objects.OpenDir(folder)
	require.NoError(t, err)
	return payload.New(payload.Options{Bucket: bucket, Secret: "secret", Over: over, Most: 64 << 20})
}

func kept(t *testing.T, s *payload.Store, task string, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	ref, err := s.Keep(t.Context(), task, text)
	require.NoError(t, err)
	return ref
}

// files returns the files in the folder of a task.
func files(t *testing.T, folder, task string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "values", task, "*"))
	require.NoError(t, err)
	return found
}

func TestAReferenceStandsForItsValue(t *testing.T) {
	s, folder := keeping(t, 100)
	text := strings.Repeat("<ä>", 1000)
	ref := kept(t, s, "task-1", text)
	require.Less(t, len(ref), 250)
	require.True(t, json.Valid(ref))
	require.Len(t, files(t, folder, "task-1"), 1)
	for _, s := range []*payload.Store{s, in(t, folder, 100)} {
		content, err := s.Open(ref)
		require.NoError(t, err)
		var got string
		require.NoError(t, json.Unmarshal(content, &got))
		require.Equal(t, text, got)
		require.Equal(t, len(content), s.Size(ref))
	}
}

func TestSmallValuesStayAsTheyAre(t *testing.T) {
	s, folder := keeping(t, 100)
	require.JSONEq(t, `{"a": 1}`, string(kept(t, s, "task-1", map[string]int{"a": 1})))
	require.Empty(t, files(t, folder, "task-1"))
	var none *payload.Store
	v, err := none.Open(json.RawMessage(`"x"`))
	require.NoError(t, err)
	require.Equal(t, `"x"`, string(v))
}

func TestEqualValuesOfATaskAreOneObject(t *testing.T) {
	s, folder := keeping(t, 100)
	long := strings.Repeat("x", 1000)
	require.Equal(t, kept(t, s, "task-1", long), kept(t, s, "task-1", long))
	require.Len(t, files(t, folder, "task-1"), 1)
	require.NotEqual(t, kept(t, s, "task-1", long), kept(t, s, "task-2", long))
	require.Len(t, files(t, folder, "task-2"), 1)
}

func TestReferencesCannotBeForged(t *testing.T) {
	s, folder := keeping(t, 100)
	ref := kept(t, s, "task-1", strings.Repeat("x", 1000))
	bucket, err := objects.OpenDir(folder)
	require.NoError(t, err)
	other := payload.New(payload.Options{Bucket: bucket, Secret: "another", Over: 100})
	for _, v := range []json.RawMessage{ref, bytes.Replace(ref, []byte("$value"), []byte(`\u0024value`), 1)} {
		require.False(t, other.Refers(v))
		same, err := other.Open(v)
		require.NoError(t, err)
		require.Equal(t, v, same)
	}
	require.True(t, s.Refers(ref))
	quoted, err := json.Marshal(string(ref))
	require.NoError(t, err)
	require.False(t, s.Refers(quoted), "in a text it is a text")
}

func TestNestedReferencesAreReplacedByTheirContents(t *testing.T) {
	s, folder := keeping(t, 100)
	var list, want []json.RawMessage
	for i := range 20 {
		text, err := json.Marshal(map[string]any{"n": i, "text": strings.Repeat("abc", i*10)})
		require.NoError(t, err)
		v, err := s.Keep(t.Context(), "task-1", text)
		require.NoError(t, err)
		list, want = append(list, v), append(want, text)
	}
	value, err := json.Marshal(map[string]any{"list": list})
	require.NoError(t, err)
	whole, err := json.Marshal(map[string]any{"list": want})
	require.NoError(t, err)
	for _, s := range []*payload.Store{s, in(t, folder, 100)} {
		got, err := s.Whole(value)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(got))
		require.Equal(t, len(whole), s.Size(value))
		begin, err := s.Begin(t.Context(), value, 777)
		require.NoError(t, err)
		require.Equal(t, string(whole[:777]), string(begin))
	}
}

func TestLargeFieldsOfParamsAreStoredSeparately(t *testing.T) {
	s, folder := keeping(t, 100)
	params := json.RawMessage(`{"n": 1, "text": "` + strings.Repeat("x", 1000) + `", "on": true}`)
	v, err := s.KeepFields(t.Context(), "task-1", params)
	require.NoError(t, err)
	require.Contains(t, string(v), `{"n":1,"text":{"$value `)
	require.Contains(t, string(v), `"on":true}`)
	require.Len(t, files(t, folder, "task-1"), 1)
	whole, err := s.Whole(v)
	require.NoError(t, err)
	require.JSONEq(t, string(params), string(whole))
	again, err := s.KeepFields(t.Context(), "task-2", v)
	require.NoError(t, err)
	require.Equal(t, string(v), string(again), "what refers to another task's object goes on doing so")
}

func TestAPartOfAValueIsReadWithoutTheRest(t *testing.T) {
	s, folder := keeping(t, 100)
	rng := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 3<<20)
	for i := range long {
		long[i] = 'a' + byte(rng.IntN(26))
	}
	text, err := json.Marshal(string(long))
	require.NoError(t, err)
	ref, err := s.Keep(t.Context(), "task-1", text)
	require.NoError(t, err)
	value := json.RawMessage(fmt.Sprintf(`[1,%s,%s]`, ref, kept(t, s, "task-1", strings.Repeat("y", 200))))
	whole, err := s.Whole(value)
	require.NoError(t, err)
	r := in(t, folder, 100).Reader(t.Context(), value)
	require.EqualValues(t, len(whole), r.Size())
	for range 200 {
		from := rng.IntN(len(whole))
		n := min(rng.IntN(1<<21), len(whole)-from)
		_, err := r.Seek(int64(from), io.SeekStart)
		require.NoError(t, err)
		got, err := io.ReadAll(io.LimitReader(r, int64(n)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(whole[from:from+n], got), "%d bytes from %d on", n, from)
	}
}

func TestErrorNamesAMissingOrChangedObject(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, file string){
		"is gone": func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
		"is not what was written": func(t *testing.T, file string) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			text[len(text)/2]++
			require.NoError(t, os.WriteFile(file, text, 0o600))
		},
		"its size or its SHA-256 is another one": func(t *testing.T, file string) {
			require.NoError(t, os.Truncate(file, 10))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder := keeping(t, 100)
			ref := kept(t, s, "task-1", strings.Repeat("x", 1000))
			file := files(t, folder, "task-1")[0]
			spoil(t, file)
			s = in(t, folder, 100)
			check := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, flow.ErrNoContent)
				require.ErrorContains(t, err, name)
				require.ErrorContains(t, err, "of task task-1")
				require.ErrorContains(t, err, file)
			}
			_, err := s.Open(ref)
			check(err)
			_, err = s.Whole(json.RawMessage("[" + string(ref) + "]"))
			check(err)
			check(s.Write(t.Context(), io.Discard, ref))
			check(s.Reader(t.Context(), ref).Check())
			_, err = io.ReadAll(s.Reader(t.Context(), ref))
			check(err)
		})
	}
}

func TestValueTooLargeToAssembleIsRefused(t *testing.T) {
	folder := t.TempDir()
	bucket, err := objects.OpenDir(folder)
	require.NoError(t, err)
	s := payload.New(payload.Options{Bucket: bucket, Secret: "secret", Over: 100, Most: 5000})
	ref := kept(t, s, "task-1", strings.Repeat("x", 3000))
	_, err = s.Whole(ref)
	require.NoError(t, err)
	_, err = s.Whole(json.RawMessage("[" + string(ref) + "," + string(ref) + "]"))
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "more than the 5000 that can be put together")
}

func TestGlimpseOfEqualValuesIsEqual(t *testing.T) {
	s, _ := keeping(t, 100)
	long := strings.Repeat("x", 1000)
	text, err := json.Marshal(long)
	require.NoError(t, err)
	plain, _ := keeping(t, 10_000)
	size, begin, sum := plain.Glimpse(text, 20)
	for _, task := range []string{"task-1", "task-2"} {
		n, b, same := s.Glimpse(kept(t, s, task, long), 20)
		require.Equal(t, []any{size, string(begin), sum}, []any{n, string(b), same})
	}
	_, _, other := s.Glimpse(kept(t, s, "task-1", long+"y"), 20)
	require.NotEqual(t, sum, other)
	_, _, one := s.Glimpse(json.RawMessage("["+string(kept(t, s, "task-1", long))+"]"), 20)
	_, _, two := s.Glimpse(json.RawMessage("["+string(kept(t, s, "task-2", long))+"]"), 20)
	require.Equal(t, one, two)
}
