package objects

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Files in the folder of an attempt.
const (
	SpecFile   = "spec.json"   // description of the work, written before a worker is asked to do it
	StatusFile = "status.json" // progress, written by the worker
	OutputFile = "output.json" // result, written by the worker before it reports success
	CancelFile = "cancel.json" // the work was canceled
)

// Values of Status.Status.
const (
	Running = "running"
	Success = "success"
	Failed  = "failed"
)

// Spec describes the work of an attempt.
type Spec struct {
	Task           string          `json:"task_id"`
	Run            string          `json:"run_id"`
	TaskName       string          `json:"task_name"`
	Workflow       string          `json:"workflow_name"`
	Execution      string          `json:"execution_id"`
	Key            string          `json:"key"` // same for all attempts
	Executor       string          `json:"executor"`
	Command        any             `json:"command,omitempty"` // string or list of strings
	File           string          `json:"file,omitempty"`
	Module         string          `json:"module,omitempty"`
	Function       string          `json:"function,omitempty"`
	Params         json.RawMessage `json:"params,omitempty"`
	Input          json.RawMessage `json:"input"`
	Upstream       json.RawMessage `json:"upstream,omitempty"`
	TimeoutSeconds float64         `json:"timeout_seconds,omitempty"`
	// null for a task without instances; ParallelCount, too
	ParallelIndex *int      `json:"parallel_index"`
	ParallelCount *int      `json:"parallel_count"`
	Attempt       int       `json:"attempt"`
	CreatedAt     time.Time `json:"created_at"`
}

// Status is the worker's report about an attempt.
type Status struct {
	Status     string     `json:"status"`
	Attempt    int        `json:"attempt"`
	StartedAt  time.Time  `json:"started_at"`
	Heartbeat  time.Time  `json:"heartbeat"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Error      string     `json:"error,omitempty"`
}

// Folder returns the folder of an attempt's files.
func Folder(run, task string, visit, attempt int) string {
	name := strconv.Itoa(attempt)
	if visit > 1 { // every visit numbers its attempts from 1
		name = strconv.Itoa(visit) + "." + name
	}
	return RunFolder(run) + task + "/" + name + "/"
}

// RunFolder returns the folder of a run's files.
func RunFolder(run string) string { return "runs/" + run + "/" }

// Forget deletes all files of a run.
func Forget(ctx context.Context, b Bucket, run string) error {
	if !isFolderName(run) {
		return nil // the run has no files
	}
	return b.Delete(ctx, RunFolder(run))
}

// isFolderName reports whether text is valid as the name of a folder.
func isFolderName(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\\\x00")
}

// WriteSpec writes the description of the work. An existing description stays, because it belongs
// to the same attempt.
func WriteSpec(ctx context.Context, b Bucket, folder string, spec *Spec) error {
	if !isFolderName(spec.Run) || !isFolderName(spec.Task) {
		return fmt.Errorf("the ids %q and %q cannot be names of folders", spec.Run, spec.Task)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := b.Create(ctx, folder+SpecFile, text); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// CallOff notifies the worker of an attempt that the work was canceled. It writes nothing if the
// files of the run are already deleted, because such a file would never be deleted.
func CallOff(ctx context.Context, b Bucket, a *Attempt) error {
	there, err := a.hasFiles(ctx, b)
	if err != nil || !there {
		return err
	}
	if err := b.Put(ctx, a.Folder+CancelFile, []byte("{}")); err != nil {
		return err
	}
	if there, err = a.hasFiles(ctx, b); err != nil || there {
		return err
	}
	return Forget(ctx, b, a.Run) // the run was deleted concurrently
}

// hasFiles reports whether files of an attempt exist.
func (a *Attempt) hasFiles(ctx context.Context, b Bucket) (bool, error) {
	_, err := b.Get(ctx, a.Folder+SpecFile, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// reportedStatus is a status as written by an arbitrary program.
type reportedStatus struct {
	Status      string          `json:"status"`
	Attempt     json.RawMessage `json:"attempt"`
	Heartbeat   json.RawMessage `json:"heartbeat"`
	HeartbeatAt json.RawMessage `json:"heartbeat_at"`
	StartedAt   json.RawMessage `json:"started_at"`
	Error       json.RawMessage `json:"error"`
}

// parseStatus parses a status. It returns false if the status is malformed or belongs to another
// attempt.
func (s *reportedStatus) parseStatus(text []byte, attempt int) bool {
	if json.Unmarshal(text, s) != nil {
		return false
	}
	switch s.Status {
	case Running, Success, Failed:
	default:
		return false
	}
	given := strings.Trim(string(s.Attempt), `"`)
	return given == "" || given == "null" || given == strconv.Itoa(attempt)
}

// maxBeat is the largest number of heartbeat bytes stored as they are. The heartbeat is stored
// after each look.
const maxBeat = 64

// heartbeatMark returns a value that changes as long as the worker lives. A hash replaces a
// heartbeat that is long or that JSON would not preserve exactly.
func (s *reportedStatus) heartbeatMark() string {
	text := cmp.Or(string(s.Heartbeat), string(s.HeartbeatAt), "-")
	if len(text) <= maxBeat && utf8.ValidString(text) {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:16])
}

// beganAt returns the start time reported by the worker, or now if it reported none.
func (s *reportedStatus) beganAt(now int64) int64 {
	var at time.Time
	if json.Unmarshal(s.StartedAt, &at) != nil || at.UnixMilli() <= 0 {
		return now
	}
	return at.UnixMilli()
}

func (s *reportedStatus) failureText() string {
	var text string
	if json.Unmarshal(s.Error, &text) != nil {
		text = string(s.Error)
	}
	return cmp.Or(strings.TrimSpace(text), "the worker has failed and does not say why")
}
