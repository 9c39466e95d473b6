package payload_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
)

func quoted(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }

func TestPendingValueIsReadableBeforeItsObjectExists(t *testing.T) {
	s, folder := keeping(t, 300)
	text := quoted(1000)
	ref, made := s.Refer("task-1", text)
	require.True(t, s.Refers(ref))
	require.Len(t, made, 1)
	require.Empty(t, files(t, folder, "task-1"))
	content, err := s.Open(ref)
	require.NoError(t, err)
	require.Equal(t, text, content)
	same, more := s.Refer("task-1", text)
	require.Equal(t, ref, same, "an equal one is the same")

	require.NoError(t, s.WriteMade(t.Context(), made))
	require.NoError(t, s.WriteMade(t.Context(), more))
	require.Len(t, files(t, folder, "task-1"), 1)
	s.DropMade(made)
	s.DropMade(more)
	content, err = in(t, folder, 300).Open(ref)
	require.NoError(t, err)
	require.Equal(t, text, content)
	again, none := s.Refer("task-1", text)
	require.Equal(t, ref, again, "it was written lately")
	require.Empty(t, none)
}

func TestReleasedValuesAreNotWritten(t *testing.T) {
	s, folder := keeping(t, 300)
	ref, made := s.Refer("task-1", quoted(1000))
	_, more := s.Refer("task-1", quoted(1000))
	s.DropMade(made)
	_, err := s.Open(ref)
	require.NoError(t, err, "somebody else needs it")
	s.DropMade(more)
	require.Error(t, s.WriteMade(t.Context(), made))
	require.Empty(t, files(t, folder, "task-1"))
	_, err = s.Open(ref)
	require.ErrorContains(t, err, "is gone")
}

func TestLargePartsBecomeReferences(t *testing.T) {
	s, _ := keeping(t, 300)
	known := kept(t, s, "task-1", strings.Repeat("y", 1000))
	many := `{` + strings.Repeat(`"a":"short",`, 40) + `"b":1}`
	for name, tt := range map[string]struct {
		value string
		made  int
		stays []string // of the value
	}{
		"a small one": {`{"a":1}`, 0, []string{`{"a":1}`}},
		"a reference": {string(known), 0, []string{string(known)}},
		"a large field of an object": {`{"small":1,"large":` + string(quoted(1000)) + `}`, 1,
			[]string{`"small":1`}},
		"an object with many small fields": {many, 1, nil},
		"a list":                           {`[1,` + string(quoted(1000)) + `]`, 1, nil},
		"a list with a reference in it": {`[` + string(known) + `,7,` + string(quoted(1000)) +
			`]`, 1, []string{string(known), ",7,"}},
		"an object with references deep down": {`{"in":{"a":` + string(known) + `,"b":` + string(
			quoted(1000)) + `},"c":` + string(quoted(900)) + `}`, 2, []string{`"in":{"a":` + string(known)}},
	} {
		t.Run(name, func(t *testing.T) {
			v, made := s.Refer("task-1", json.RawMessage(tt.value))
			require.Len(t, made, tt.made)
			require.True(t, json.Valid(v))
			for _, part := range tt.stays {
				require.Contains(t, string(v), part)
			}
			want, err := s.Whole(json.RawMessage(tt.value))
			require.NoError(t, err)
			whole, err := s.Whole(v)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(whole))
			s.DropMade(made)
		})
	}
}

func TestReferencesStayUnchangedWithASmallLimit(t *testing.T) {
	s, _ := keeping(t, 10)
	ref := kept(t, s, "task-1", "a short text")
	v, made := s.Refer("task-1", ref)
	require.Equal(t, ref, v)
	require.Empty(t, made)
	v, err := s.KeepFields(t.Context(), "task-1", ref)
	require.NoError(t, err)
	require.Equal(t, ref, v)
}

// full is a bucket that rejects all writes.
type full struct{ objects.Bucket }

func (full) Put(context.Context, string, []byte) error { return errors.New("the disk is full") }

func TestWriteErrorsAreReported(t *testing.T) {
	dir, err := objects.OpenDir(t.TempDir())
	require.NoError(t, err)
	s := payload.New(payload.Options{Bucket: full{dir}, Secret: "secret", Over: 300})
	_, made := s.Refer("task-1", quoted(1000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, s.WriteMade(ctx, made), "a value of 1002 bytes of task task-1 could not be kept")
}

// away is a bucket that does not answer before a time.
type away struct {
	objects.Bucket
	until time.Time
}

func (a *away) answer(ctx context.Context) error {
	if time.Now().Before(a.until) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (a *away) Put(ctx context.Context, key string, v []byte) error {
	if err := a.answer(ctx); err != nil {
		return err
	}
	return a.Bucket.Put(ctx, key, v)
}

func (a *away) Get(ctx context.Context, key string, most int) ([]byte, error) {
	if err := a.answer(ctx); err != nil {
		return nil, err
	}
	return a.Bucket.Get(ctx, key, most)
}

func TestPatientCallersWaitLongerForABucket(t *testing.T) {
	folder := t.TempDir()
	ref := kept(t, in(t, folder, 300), "task-1", strings.Repeat("y", 1000))
	synctest.Test(t, func(t *testing.T) {
		dir, err := objects.OpenDir(folder)
		require.NoError(t, err)
		a := &away{Bucket: dir, until: time.Now().Add(4 * time.Minute)}
		s := payload.New(payload.Options{Bucket: a, Secret: "secret", Over: 300})
		begun := time.Now()
		_, err = s.Whole(ref)
		require.ErrorContains(t, err, "could not be read")
		_, err = s.Keep(t.Context(), "task-1", quoted(1000))
		require.ErrorContains(t, err, "could not be kept")
		require.Equal(t, time.Minute, time.Since(begun))
		v, err := s.WholeFor(s.Patiently(t.Context()), ref)
		require.NoError(t, err)
		require.Len(t, v, 1002)

		a.until = time.Now().Add(4 * time.Minute)
		_, made := s.Refer("task-1", quoted(900))
		require.NoError(t, s.WriteMade(t.Context(), made))
		a.until = time.Now().Add(time.Hour)
		begun = time.Now()
		_, err = s.Keep(s.Patiently(t.Context()), "task-1", quoted(2000))
		require.ErrorContains(t, err, "could not be kept")
		require.Equal(t, 5*time.Minute, time.Since(begun))
	})
}
