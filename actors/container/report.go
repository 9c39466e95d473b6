package container

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

// Files are how containers report that do so by an object store.
type Files interface {
	// Dispatch writes what a job has to do, and tells where. Whoever does so once more finds the
	// same files.
	Dispatch(ctx context.Context, job *flow.Job) (address string, x flow.External, err error)
	// Poll tells by the files how a job is.
	Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error)
	// Cancel says in a file that nobody waits for the job any longer.
	Cancel(ctx context.Context, x flow.External) error
}

const (
	specVariable = "TASK_SPEC_PATH"
	// filesFolder is where a container finds its attempt's files, if those are in a folder of this
	// host.
	filesFolder = "/ork/task"
	// endGrace is how long a container may go on that has said that it has ended, and how long what
	// it says may be waited for when it has.
	endGrace = 5 * time.Second
)

// reportFiles are those of an attempt, as its tracker has to know them.
type reportFiles struct {
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`
}

// addFileReporting has a container report by files: it finds in a variable where they are. A folder
// of this host it sees as one of its own.
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

// reportMemo is what was noted at the last look at a container that reports by files.
type reportMemo struct {
	Files  json.RawMessage `json:"files,omitempty"`
	OverAt int64           `json:"over_at,omitempty"` // since when it has ended, or has said so
}

// externalFor is the work outside that its files are.
func (f *reportFiles) externalFor(x flow.External, noted *reportMemo) flow.External {
	x.Service, x.ID, x.Data, x.Memo = flow.ObjectStore, f.ID, f.Data, noted.Files
	return x
}

// pollReported tells how a container is that reports by files: they say what came of it, and its
// end is waited for a little beside that.
func (s *Service) pollReported(ctx context.Context, x flow.External, n *trackerNote, w *containerWatch, over bool) (flow.ExternalStatus, error) {
	var noted reportMemo
	_ = json.Unmarshal(x.Memo, &noted) // what we have noted can be read
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

// endStatus is an end that files tell, without secrets, and with the numbers that the container has
// printed.
func (s *Service) endStatus(w *containerWatch, end flow.ExternalStatus) flow.ExternalStatus {
	w.log.Close()
	status := flow.ExternalStatus{Ended: true, Output: w.hide.JSON(end.Output), Error: w.hide.Text(end.Error), BeganAt: end.BeganAt}
	select {
	case <-w.done:
		status.Metrics = job.NumbersJSON(program.HideMetrics(w.listener.Result("").Metrics, w.hide))
	default: // it goes on, and is ended now
	}
	return status
}
