package containers

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/types/mount"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/job"
)

// Files lets containers report through an object store.
type Files interface {
	// Dispatch writes the job's specification, and returns its address. A repeated call finds the
	// same files.
	Dispatch(ctx context.Context, job *flow.Job) (address string, x flow.External, err error)
	// Poll returns the status of a job from its files.
	Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error)
	// Cancel writes a file that cancels the job.
	Cancel(ctx context.Context, x flow.External) error
}

const (
	specVariable = "TASK_SPEC_PATH"
	// filesFolder is the mount point of the attempt's files, if they are in a folder of this host.
	filesFolder = "/ork/task"
	// endGrace is how long a container may continue after its reported end, and how long its report
	// may be missing after its exit.
	endGrace = 5 * time.Second
)

// reportFiles identify the files of an attempt for its tracker.
type reportFiles struct {
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`
}

// addFileReporting makes a container report through files. A variable contains their address. A
// folder of this host is mounted into the container.
func (s *Service) addFileReporting(ctx context.Context, of *containerPlan, j *flow.Job) error {
	if s.opts.Files == nil {
		return flow.Errorf(flow.Denied, "this server has no object store")
	}
	address, x, err := s.opts.Files.Dispatch(ctx, j)
	if err != nil {
		return err
	}
	of.note.Files = &reportFiles{x.ID, x.Data}
	if !strings.Contains(address, "://") {
		folder, err := filepath.EvalSymlinks(filepath.Dir(address))
		if err != nil {
			return err
		}
		own := mount.Mount{Type: mount.TypeBind, Source: folder, Target: filesFolder}
		others := of.mounts
		of.mounts = func() ([]mount.Mount, error) {
			list, err := others()
			return append(list, own), err
		}
		of.HostConfig.Mounts = append(of.HostConfig.Mounts, own)
		address = filesFolder + "/" + filepath.Base(address)
	}
	of.Config.Env = append(of.Config.Env, specVariable+"="+address)
	return nil
}

// reportMemo is the memo of the last poll of a container that reports through files.
type reportMemo struct {
	Files  json.RawMessage `json:"files,omitempty"`
	OverAt int64           `json:"over_at,omitempty"` // when the container ended or reported it
}

// externalFor returns the external work that represents the files.
func (f *reportFiles) externalFor(x flow.External, noted *reportMemo) flow.External {
	x.Service, x.ID, x.Data, x.Memo = flow.ObjectStore, f.ID, f.Data, noted.Files
	return x
}

// pollReported polls a container that reports through files. The files contain the result. It also
// waits briefly for the end of the container.
func (s *Service) pollReported(ctx context.Context, x flow.External, n *trackerNote,
	w *containerWatch, over bool) (flow.ExternalStatus, error) {
	var noted reportMemo
	_ = json.Unmarshal(x.Memo, &noted) // the memo was encoded by this service
	told, err := s.opts.Files.Poll(ctx, n.Files.externalFor(x, &noted))
	if err != nil {
		return told, err
	}
	if !told.Ended {
		noted.Files = told.Memo
	}
	if over && !s.awaitComplete(ctx, w) {
		return flow.ExternalStatus{Memo: x.Memo, BeganAt: told.BeganAt}, nil
	}
	if told.Ended || over {
		noted.OverAt = firstNoted(noted.OverAt, s.opts.Now())
	}
	stayed := noted.OverAt > 0 && s.opts.Now()-noted.OverAt >= endGrace.Milliseconds()
	switch {
	case told.Ended && (over || stayed):
		return s.endStatus(w, told), nil
	case over && stayed:
		return s.endStatus(w, flow.ExternalStatus{Ended: true, Error: "exited without a status", BeganAt: told.BeganAt}), nil
	}
	memo, err := json.Marshal(noted)
	return flow.ExternalStatus{Memo: memo, BeganAt: told.BeganAt}, err
}

func firstNoted(noted, now int64) int64 {
	if noted > 0 {
		return noted
	}
	return now
}

// endStatus returns the end according to the files, without secrets, and with the metrics that the
// container has printed.
func (s *Service) endStatus(w *containerWatch, end flow.ExternalStatus) flow.ExternalStatus {
	w.log.Close()
	status := flow.ExternalStatus{Ended: true, Output: w.hide.JSON(end.Output), Error: w.hide.Text(end.Error), BeganAt: end.BeganAt}
	select {
	case <-w.done:
		status.Metrics = job.NumbersJSON(program.HideMetrics(w.listener.Result("").Metrics, w.hide))
	default: // the container is still running and will be stopped
	}
	return status
}
