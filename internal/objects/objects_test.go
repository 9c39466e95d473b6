package objects_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/testing/bucketest"
)

func TestAFolderIsABucket(t *testing.T) {
	bucketest.Run(t, func(t *testing.T) objects.Bucket {
		b, err := objects.Open(t.Context(), "file://"+filepath.ToSlash(t.TempDir())+"/objects", nil)
		require.NoError(t, err)
		return b
	})
}

func TestInvalidBucketIsRefused(t *testing.T) {
	for url, want := range map[string]string{
		"":                    "no URL such as file:///",
		"/var/lib":            "no URL such as file:///",
		"file://var/lib":      "three slashes",
		"file:///":            "names no folder",
		"gs://b?secret=x":     "gs: URLs are not in this binary: use troupe-cloud",
		"s3://key:secret@b/x": "s3: URLs are not in this binary",
	} {
		_, err := objects.Open(t.Context(), url, nil)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestNothingOutsideOfTheFolderIsReadOrWritten(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other"), []byte("secret"), 0o600))
	b, err := objects.OpenDir(filepath.Join(dir, "objects"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "objects", "link")))
	_, err = b.Get(t.Context(), "link", 100)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = b.Get(t.Context(), "../other", 100)
	require.Error(t, err)
	require.Error(t, b.Put(t.Context(), "../third", nil))
	require.Error(t, b.Delete(t.Context(), "../other/"))
	require.FileExists(t, filepath.Join(dir, "other"))
}

// looked is an attempt that is looked at, at times set by the test.
type looked struct {
	*testing.T
	objects.Attempt
	dir  string
	b    *objects.Dir
	seen objects.Seen
}

func newLooked(t *testing.T) *looked {
	dir := t.TempDir()
	b, err := objects.OpenDir(dir)
	require.NoError(t, err)
	l := &looked{T: t, dir: dir, b: b, Attempt: objects.Attempt{Run: "r",
		Folder: objects.Folder("r", "t", 1, 2), Attempt: 2, StartMS: 300_000, HeartbeatMS: 60_000,
		Since: 1000}}
	require.NoError(t, objects.WriteSpec(t.Context(), b, l.Folder, &objects.Spec{Run: "r", Task: "t"}))
	return l
}

// says writes a file as the worker.
func (l *looked) says(file, text string) {
	require.NoError(l, os.WriteFile(filepath.Join(l.dir, filepath.FromSlash(l.Folder), file), []byte(text), 0o600))
}

// at looks at the attempt the given number of seconds after the dispatch.
func (l *looked) at(seconds int64) objects.Verdict {
	v, err := l.Look(l.Context(), l.b, objects.Direct{Bucket: l.b}, l.seen, 1000+seconds*1000, 100)
	require.NoError(l, err)
	l.seen = v.Seen
	return v
}

func (l *looked) goesOn(seconds int64, again time.Duration) {
	l.Helper()
	v := l.at(seconds)
	require.False(l, v.Ended, v.Error)
	require.Equal(l, again, v.Again)
}

func TestWorkerThatNeverStartsTimesOut(t *testing.T) {
	l := newLooked(t)
	l.goesOn(0, 2*time.Second)
	l.goesOn(59, 2*time.Second)
	l.goesOn(60, 5*time.Second)
	l.goesOn(298, 2*time.Second)
	require.Equal(t, objects.Verdict{Ended: true, Error: "job never started"}, l.at(300))
}

func TestChangingHeartbeatKeepsAnAttemptAlive(t *testing.T) {
	l := newLooked(t)
	l.says("status.json", `{"status": "running", "heartbeat": "a"}`)
	l.goesOn(200, 5*time.Second)
	l.goesOn(230, 5*time.Second)
	l.goesOn(231, 10*time.Second)
	l.goesOn(255, 5*time.Second)
	l.says("status.json", `{"status": "running", "heartbeat": "b"}`)
	l.goesOn(259, 5*time.Second)
	l.says("status.json", `{"status": "running", "heartbeat_at": 7}`)
	l.goesOn(318, 5*time.Second)
	l.goesOn(377, time.Second)
	require.Equal(t, objects.Verdict{Ended: true, Error: "heartbeat timeout", BeganAt: 201_000}, l.at(378))
}

func TestFirstStatusStartsAnAttempt(t *testing.T) {
	for started, want := range map[string]int64{
		`"1970-01-01T00:00:02.5Z"`: 2500, `"yesterday"`: 6000, `7`: 6000, `null`: 6000, `"0001-01-01T00:00:00Z"`: 6000,
	} {
		l := newLooked(t)
		require.Zero(t, l.at(1).BeganAt)
		l.says("status.json", `{"status": "running", "heartbeat": 1, "started_at": `+started+`}`)
		require.Equal(t, want, l.at(5).BeganAt, started)
		l.says("status.json", `{"status": "running", "heartbeat": 2, "started_at": "1970-01-01T00:00:09Z"}`)
		require.Equal(t, want, l.at(9).BeganAt, "it began once")
	}
}

func TestTheClockOfAWorkerDoesNotMatter(t *testing.T) {
	l := newLooked(t)
	for i, heartbeat := range []string{"1999-01-01T00:00:00Z", "2199-01-01T00:00:00Z", "1999-01-01T00:00:00Z"} {
		l.says("status.json", `{"status": "running", "heartbeat": "`+heartbeat+`"}`)
		require.False(t, l.at(int64(50*i)).Ended)
	}
}

func TestWhatAStatusMeans(t *testing.T) {
	for name, tt := range map[string]struct {
		status, output string
		want           objects.Verdict
	}{
		"success with an output": {`{"status": "success", "attempt": 2}`, `{"n": 1}`,
			objects.Verdict{Ended: true, Said: true, Output: []byte(`{"n": 1}`)}},
		"success without one": {`{"status": "success"}`, "", objects.Verdict{Ended: true, Said: true}},
		"an output that is too large": {`{"status": "success"}`,
			`"` + strings.Repeat("x", 100) + `"`, objects.Verdict{Ended: true, Said: true,
				Error: "output.json has more than 100 bytes, the limit of a value " +
					"(--max-value); keep large data elsewhere and pass a reference"}},
		"an output that is no JSON": {`{"status": "success"}`, `{`,
			objects.Verdict{Ended: true, Said: true, Error: "output.json is no JSON in UTF-8"}},
		"an output that is no text": {`{"status": "success"}`, "\"\xff\"",
			objects.Verdict{Ended: true, Said: true, Error: "output.json is no JSON in UTF-8"}},
		"failure": {`{"status": "failed", "error": "no luck", ` +
			`"attempt": "2"}`, "", objects.Verdict{Ended: true, Said: true, Error: "no luck"}},
		"failure with an object": {`{"status": "failed", "error": {"code": 7}}`, "",
			objects.Verdict{Ended: true, Said: true, Error: `{"code": 7}`}},
		"failure without a word": {`{"status": "failed"}`, "",
			objects.Verdict{Ended: true, Said: true, Error: "the worker has failed and does not say why"}},
		"a half of one changes nothing":   {`{"status": "succ`, "", objects.Verdict{}},
		"nor one of another attempt":      {`{"status": "success", "attempt": 1}`, "", objects.Verdict{}},
		"nor another word":                {`{"status": "done"}`, "", objects.Verdict{}},
		"nor one that is far too large":   {`{"status": "failed", "error": "` + strings.Repeat("x", 1<<20) + `"}`, "", objects.Verdict{}},
		"nor a word that is of no status": {`7`, "", objects.Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLooked(t)
			l.says("status.json", tt.status)
			if tt.output != "" {
				l.says("output.json", tt.output)
			}
			v := l.at(1)
			require.Equal(t, v.Said, v.BeganAt == 2000, "who says how it ended has begun")
			v.Again, v.Seen, v.BeganAt = 0, objects.Seen{}, 0
			require.Equal(t, tt.want, v)
		})
	}
}

// closed is a bucket with an unreadable object.
type closed struct {
	*objects.Dir
	file string
}

func (c closed) Get(ctx context.Context, key string, most int) ([]byte, error) {
	if path.Base(key) == c.file {
		return nil, &fs.PathError{Op: "open", Path: key, Err: fs.ErrPermission}
	}
	return c.Dir.Get(ctx, key, most)
}

func TestUnreadableFilesTimeOut(t *testing.T) {
	l := newLooked(t)
	look := func(file string, seconds int64) objects.Verdict {
		b := closed{l.b, file}
		v, err := l.Look(t.Context(), b, objects.Direct{Bucket: b}, objects.Seen{}, 1000+seconds*1000, 100)
		require.NoError(t, err)
		return v
	}
	require.False(t, look("status.json", 299).Ended)
	require.Equal(t, "job never started: status.json is there, but the member may not read it: "+
		"open runs/r/t/2/status.json: permission denied", look("status.json", 300).Error)
	l.says("status.json", `{"status": "success"}`)
	v := look("output.json", 1)
	require.True(t, v.Ended && v.Said)
	require.Contains(t, v.Error, "output.json is there, but the member may not read it")
}

func TestFolderReplacedByALinkHasNoFiles(t *testing.T) {
	for name, to := range map[string]string{"to elsewhere": t.TempDir(), "to another one's": "3",
		"to itself": "2", "to what is not there": "none"} {
		t.Run(name, func(t *testing.T) {
			l := newLooked(t)
			folder := filepath.Join(l.dir, filepath.FromSlash(l.Folder))
			require.NoError(t, os.RemoveAll(folder))
			require.NoError(t, l.b.Put(t.Context(), objects.Folder("r", "t", 1, 3)+"status.json", []byte(`{"status": "success"}`)))
			require.NoError(t, os.Symlink(to, folder))
			l.goesOn(0, 2*time.Second)
			require.Equal(t, "job never started", l.at(300).Error)
		})
	}
}

func TestOutageDoesNotCountAsSilence(t *testing.T) {
	l := newLooked(t)
	l.says("status.json", `{"status": "running", "heartbeat": "a"}`)
	l.goesOn(1, 2*time.Second)
	l.seen.ChangedAt = 1000 + 500_000 // it could not be looked at until then
	l.goesOn(510, 5*time.Second)
	require.True(t, l.at(560).Ended)
}

func TestASpecIsWrittenOnce(t *testing.T) {
	l := newLooked(t)
	require.NoError(t, objects.WriteSpec(t.Context(), l.b, l.Folder, &objects.Spec{Run: "r", Task: "t", TaskName: "another"}))
	text, err := l.b.Get(t.Context(), l.Folder+"spec.json", 10_000)
	require.NoError(t, err)
	require.NotContains(t, string(text), "another")
	require.Error(t, objects.WriteSpec(t.Context(), l.b, "x/", &objects.Spec{Run: "../r", Task: "t"}))
}

func TestEachAttemptHasAFolderOfItsOwn(t *testing.T) {
	require.Equal(t, "runs/r/t/1/", objects.Folder("r", "t", 1, 1))
	require.Equal(t, "runs/r/t/2/", objects.Folder("r", "t", 1, 2))
	require.Equal(t, "runs/r/t/2.1/", objects.Folder("r", "t", 2, 1))
}

func TestFoldersOfOtherRunsAreNotRead(t *testing.T) {
	good := objects.Attempt{Run: "r", Folder: "runs/r/t/1/", StartMS: 1, HeartbeatMS: 1}
	require.True(t, good.Sound("r"))
	require.False(t, good.Sound("s"))
	for _, folder := range []string{"", "runs/s/t/1/", "runs/r/../s/1/", "runs/r/t/", "runs/r/t/1",
		"runs/r/t/1/2/", "runs/r//1/", "runs/r/t/../"} {
		bad := good
		bad.Folder = folder
		require.False(t, bad.Sound("r"), folder)
	}
}

// leaving is a bucket whose run is deleted just before a write.
type leaving struct{ *objects.Dir }

func (l leaving) Put(ctx context.Context, key string, value []byte) error {
	return errors.Join(objects.Forget(ctx, l.Dir, "r"), l.Dir.Put(ctx, key, value))
}

func TestCallOffLeavesNoFilesOfADeletedRun(t *testing.T) {
	l := newLooked(t)
	require.NoError(t, objects.CallOff(t.Context(), l.b, &l.Attempt))
	require.FileExists(t, filepath.Join(l.dir, filepath.FromSlash(l.Folder), "cancel.json"))
	require.NoError(t, objects.CallOff(t.Context(), leaving{l.b}, &l.Attempt))
	require.NoDirExists(t, filepath.Join(l.dir, "runs", "r"))
	require.NoError(t, objects.CallOff(t.Context(), l.b, &l.Attempt))
	require.NoDirExists(t, filepath.Join(l.dir, "runs", "r"))
}

func TestARunIsForgottenWithAllItsFiles(t *testing.T) {
	l := newLooked(t)
	require.NoError(t, objects.Forget(t.Context(), l.b, "r"))
	require.NoDirExists(t, filepath.Join(l.dir, "runs", "r"))
	require.DirExists(t, filepath.Join(l.dir, "runs"))
	for _, name := range []string{"", ".", "..", "a/b"} {
		require.NoError(t, objects.Forget(t.Context(), l.b, name))
	}
	require.DirExists(t, filepath.Join(l.dir, "runs"))
	_, err := l.b.Get(t.Context(), l.Folder+"spec.json", 1)
	require.True(t, errors.Is(err, fs.ErrNotExist))
}

func TestIncompleteFilesOfACrashAreRemoved(t *testing.T) {
	folder := t.TempDir()
	dir, err := objects.OpenDir(folder)
	require.NoError(t, err)
	require.NoError(t, dir.Put(t.Context(), "a/whole", []byte("1")))
	half, empty := filepath.Join(folder, "a", ".draft-HALF"), filepath.Join(folder, "a", "b")
	require.NoError(t, os.WriteFile(half, []byte("x"), 0o600))
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.NoError(t, dir.Tidy(t.Context(), "a/", time.Now().Add(-time.Minute)))
	require.FileExists(t, half, "somebody may be writing it")
	require.NoDirExists(t, empty)
	require.NoError(t, dir.Tidy(t.Context(), "a/", time.Now().Add(time.Minute)))
	require.NoFileExists(t, half)
	require.FileExists(t, filepath.Join(folder, "a", "whole"))
	require.NoError(t, dir.Tidy(t.Context(), "none/", time.Now()))
}
