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

// The files in the folder of an attempt.
const (
	SpecFile   = "spec.json"   // what is to be done, written before anybody is asked to
	StatusFile = "status.json" // how it is, written by the worker
	OutputFile = "output.json" // what came of it, written by the worker before it says that it went well
	CancelFile = "cancel.json" // nobody waits for it any longer
)

// Words of a status.
const (
	Running = "running"
	Success = "success"
	Failed  = "failed"
)

// Spec is what an attempt has to do.
type Spec struct {
	Task           string          `json:"task_id"`
	Run            string          `json:"run_id"`
	TaskName       string          `json:"task_name"`
	Workflow       string          `json:"workflow_name"`
	Execution      string          `json:"execution_id"`
	Key            string          `json:"key"` // the same for all attempts
	Executor       string          `json:"executor"`
	Command        any             `json:"command,omitempty"` // a text, or a list of texts
	File           string          `json:"file,omitempty"`
	Module         string          `json:"module,omitempty"`
	Function       string          `json:"function,omitempty"`
	Params         json.RawMessage `json:"params,omitempty"`
	Input          json.RawMessage `json:"input"`
	Upstream       json.RawMessage `json:"upstream,omitempty"`
	TimeoutSeconds float64         `json:"timeout_seconds,omitempty"`
	ParallelIndex  *int            `json:"parallel_index"` // null of a task without instances, like the count
	ParallelCount  *int            `json:"parallel_count"`
	Attempt        int             `json:"attempt"`
	CreatedAt      time.Time       `json:"created_at"`
}

// Status is what a worker says of an attempt.
type Status struct {
	Status     string     `json:"status"`
	Attempt    int        `json:"attempt"`
	StartedAt  time.Time  `json:"started_at"`
	Heartbeat  time.Time  `json:"heartbeat"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Error      string     `json:"error,omitempty"`
}

// Folder is where the files of an attempt are.
func Folder(run, task string, visit, attempt int) string {
	name := strconv.Itoa(attempt)
	if visit > 1 { // attempts are counted anew then
		name = strconv.Itoa(visit) + "." + name
	}
	return RunFolder(run) + task + "/" + name + "/"
}

// RunFolder is where those of a run are.
func RunFolder(run string) string { return "runs/" + run + "/" }

// Forget deletes all files of a run.
func Forget(ctx context.Context, b Bucket, run string) error {
	if !isFolderName(run) {
		return nil // nothing was ever written for it
	}
	return b.Delete(ctx, RunFolder(run))
}

// isFolderName reports whether a name may be that of a folder.
func isFolderName(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\\\x00")
}

// WriteSpec writes what is to be done. One that is there already stays: it is the same attempt's.
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

// CallOff tells the worker of an attempt that nobody waits for it any longer. Where its files are
// gone, with its run, nothing is written: nobody would delete it.
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
	return Forget(ctx, b, a.Run) // it went at this moment
}

// hasFiles reports whether an attempt has files.
func (a *Attempt) hasFiles(ctx context.Context, b Bucket) (bool, error) {
	_, err := b.Get(ctx, a.Folder+SpecFile, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// reportedStatus is a status as somebody's program may write it.
type reportedStatus struct {
	Status      string          `json:"status"`
	Attempt     json.RawMessage `json:"attempt"`
	Heartbeat   json.RawMessage `json:"heartbeat"`
	HeartbeatAt json.RawMessage `json:"heartbeat_at"`
	StartedAt   json.RawMessage `json:"started_at"`
	Error       json.RawMessage `json:"error"`
}

// parseStatus is false for what makes no sense, and for what is of another attempt.
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

// maxBeat is how much is kept of a heartbeat as it is: it is written down after each look.
const maxBeat = 64

// heartbeatMark is what changes as long as the worker lives. What is long, or would not be the same
// once it was kept as JSON, is told by its hash.
func (s *reportedStatus) heartbeatMark() string {
	text := cmp.Or(string(s.Heartbeat), string(s.HeartbeatAt), "-")
	if len(text) <= maxBeat && utf8.ValidString(text) {
		return text
	}
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:16])
}

// beganAt is when the worker has begun, as it says; else it is now.
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
